"""Models that people train, of transformers, in portable mode: a GPU gives the bits of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from device_bits import same

import samebits

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.gpu

N_WORDS, N_CLASSES = 60, 5
COMMON = {
    "vocab_size": N_WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
GROUPED = {**COMMON, "num_key_value_heads": 2, "head_dim": 8}
MODELS = {
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": N_WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4}),
    "llama": ("LlamaForCausalLM", GROUPED),
    "gemma 3": ("Gemma3ForCausalLM", {**GROUPED, "sliding_window": 8}),
    "mixture of experts": (
        "Qwen3MoeForCausalLM",
        {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
    ),
    "mamba": (
        "MambaForCausalLM",
        {"vocab_size": N_WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    ),
    "bert": ("BertForMaskedLM", COMMON),
    "t5": (
        "T5ForConditionalGeneration",
        {
            "vocab_size": N_WORDS,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
    ),
    "vit": (
        "ViTForImageClassification",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "image_size": 16,
            "patch_size": 4,
            "num_labels": N_CLASSES,
        },
    ),
    "convnext": (
        "ConvNextForImageClassification",
        {
            "hidden_sizes": [8, 16],
            "depths": [1, 1],
            "num_stages": 2,
            "num_labels": N_CLASSES,
            "drop_path_rate": 0.1,
        },
    ),
    "wav2vec 2": (
        "Wav2Vec2ForCTC",
        {
            "vocab_size": N_WORDS,
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "conv_dim": (16, 16),
            "conv_stride": (4, 4),
            "conv_kernel": (8, 4),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
            "mask_time_length": 2,
        },
    ),
}


def made(name):
    """A small model of that kind, with weights that do not depend on the device."""
    kind, options = MODELS[name]
    kind = getattr(transformers, kind)
    return kind(kind.config_class(**options))


def batch(model):
    """What that model is trained with."""
    words = torch.randint(3, N_WORDS, (2, 12))
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.randint(0, N_CLASSES, (2,))}
    if model.main_input_name == "input_values":
        return {"input_values": torch.randn(2, 1600), "labels": words[:, :8]}
    return {"input_ids": words, "labels": words}


def trained(name, device, dtype):
    """The losses of three steps, and the weights after them."""
    np.random.seed(0)  # of which a model draws masks
    torch.manual_seed(0)
    model = made(name).to(device, dtype).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses = []
    for _ in range(3):
        given = batch(model).items()
        given = {key: (x.to(dtype) if x.is_floating_point() else x).to(device) for key, x in given}
        loss = model(**given).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(parameter.detach() for parameter in model.parameters())]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_training_has_the_bits_of_the_cpu(name, dtype):
    with samebits.portable():
        expected, found = trained(name, "cpu", dtype), trained(name, "cuda", dtype)

    assert all(same(one, other) for one, other in zip(expected, found, strict=True))
