"""A key of a known issuer is masked wherever it stands, and its line stays usable."""

from __future__ import annotations

import json

import pytest
from secret_support import core, keys

from samebits._text.masking import Masker, masked, masked_code
from samebits._text.secret_names import MASK
from samebits._text.secret_shapes import SHAPES

PLACES = (
    "{}",
    "bad key {}",
    "f({!r})",
    "x={}",
    "http://h/?q={}&y=1",
    "http://h/?q%3D{}&y=1",
    "a/{}/b.csv",
    "['{}']",
    '{{"cell": ["x = {}"]}}',
    "first\\n{}",
    "\x1b[31m{}\x1b[0m",
    "+    model = load('{}')",
    "(see {})",
    "{}.",
    "`{}`",
    "<{}>",
    "{},{{}}",
)


def test_every_issuer_has_an_example():
    assert {shape.issuer for shape in SHAPES} <= {name.partition(", ")[0] for name in keys()} | {
        "OpenAI, Anthropic and others"
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mask", [masked, masked_code], ids=["text", "code"])
def test_a_key_is_masked_wherever_it_stands(seed, place, mask):
    left = {}
    for name, key in keys(seed).items():
        found = mask(place.format(key))
        if core(key) in found or MASK not in found:
            left[name] = found
    assert not left


@pytest.mark.parametrize("seed", range(3))
def test_no_place_of_a_run_keeps_one(seed):
    for name, key in keys(seed).items():
        masker = Masker(("train.py", key, f"--x={key}", "--y", key), {"MY_KEY": key})
        texts = (
            *masker.command,
            masker.message(f"ValueError: {key}"),
            masker.text(f"data/{key}.csv"),
            json.dumps(masker.value({key: [key], "x": {"y": key}})),
            masker.patch(
                f"diff --git a/t.py b/t.py\n+x = '{key}'\ndiff --git a/t.yaml b/t.yaml\n+x: {key}\n"
            ),
        )
        assert core(key) not in " ".join(texts), name


CODE = (
    'os.environ["HF_TOKEN"] = "X"',
    'os.environ.setdefault("HF_TOKEN", "X")',
    'os.getenv("HF_TOKEN", "X")',
    'token: str = "X"',
    'api_key: Optional[Union[str, bytes]] = "X"',
    'api_key: str = Field("X")',
    'api_key: str = field(default="X")',
    'api_key = os.getenv("Y") or "X"',
    'api_key = key if key else "X"',
    'api_key = ("X")',
    'api_key = (\n+    "X"\n+)',
    'api_key = f"X"',
    'api_key=b"X"',
    'api_key = """X"""',
    'api_key = """\nX\n"""',
    'api_key = "ab" "X"',
    'api_key = \\\n    "X"',
    'api_key="a\\"X"',
    'headers["Authorization"] = "Bearer X"',
    'headers["x-api-key"] = "X"',
    "headers = {'X-Auth-Token': 'X'}",
    'parser.add_argument("--token", type=str, default="X")',
    'subprocess.run(["tool", "--token", "X"])',
    'requests.get(url, auth=("me", "X"))',
    'HTTPBasicAuth("me", "X")',
    'SecretStr("X")',
    'if password == "X":',
    'url = "https://h/?access_token=X&page=2"',
    'dsn = "AccountName=a;AccountKey=X;EndpointSuffix=c"',
    '    "api_key = \\"X\\"\\n",',
    '    "os.environ[\\"HF_TOKEN\\"] = \\"X\\"\\n"',
    '    "%env HF_TOKEN=X\\n",',
    "!export HF_TOKEN=X",
    "# HF_TOKEN=X python train.py",
)


@pytest.mark.parametrize("line", CODE)
@pytest.mark.parametrize("secret", ["hunter2!", "S3cr-t_Value"])
def test_strings_that_code_gives_the_name_of_a_secret(line, secret):
    for mask in (masked_code, masked):
        found = mask(
            line.replace("X", secret) if "X-Auth" not in line else line.replace("'X'", f"'{secret}'")
        )
        assert secret not in found
        assert found.count("\n") == line.count("\n")


HEX = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "call",
    [
        'wandb.Api("X")', 'openai.Client("X")', 'HfApi("X")', "OpenAI('X')", 'Gitlab("https://h", "X")',
        'Client(\n+    "AC",\n+    "X",\n+)', 'connect("X")', 'comet_ml.Experiment("X")', 'set_token("X")',
        'Client(token="X")', 'Client(key="X")', 'client = cohere.ClientV2("X")',
    ],
)  # fmt: skip
def test_a_key_among_the_arguments_of_a_client(call):
    assert HEX not in masked_code(call.replace("X", HEX))


@pytest.mark.parametrize(
    "line",
    [
        "token = state.push('link_open', 'a', 1)",
        "signature = inspect.signature(function)",
        "next_token = logits.argmax(-1)",
        "token=token, cookies=cookies, auth=self.auth)",
        "q_rot, q_pass = q[..., :dim], q[..., dim:]",
        "def _begin(self, *, new_pass: bool) -> None:",
        "api_key: str | None = None,",
        'token = kwargs.pop("token", None)',
        'token = "the"',
        'self.token = AddedToken("<image>", normalized=False)',
        'TOKEN = "TOKEN"',
        '"secrets.choice": "{random}.choice({0})",',
        'headers["Authorization"] = f"Bearer {token}"',
        'url = f"s3://{user}:{password}@host"',
        f'commit = "{HEX}"',
        f'model = load("{HEX}")',
        f'api.snapshot_download("meta/llama-3-70b-2024", revision="{HEX}")',
        f'Client(revision="{HEX}")',
        'run = wandb.init(project="llama-3-70b-instruct-2024-05")',
        'x = "123e4567-e89b-12d3-a456-426614174000"',
        'png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"',
        "class BidirectionalTransformerEncoderLayer2WithRelativePositions(nn.Module):",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "The pass: the gradients of all layers, with a bearer token of the server.",
    ],
)
def test_ordinary_code_stays_as_it_is(line):
    """A patch with a masked line that the commit has does not apply."""
    assert masked_code(line) == line


def test_a_private_key_in_a_patch_keeps_its_lines():
    """`git apply` counts them, and wants a sign before each."""
    mark = "PRIVATE KEY-----"
    body = "".join(f"+{character * 60}\n" for character in "abc")
    diff = (
        f"diff --git a/k.py b/k.py\n@@ -1 +1,6 @@\n x\n+k = '''-----BEGIN {mark}\n{body}+-----END {mark}'''\n"
    )
    found = Masker().patch(diff)
    assert "aaaa" not in found
    assert "bbbb" not in found
    assert [line[:1] for line in found.splitlines()] == [line[:1] for line in diff.splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        "--name sk-learn-baseline-2024-long-name-of-run",
        "--name r8_experiment_number_20_long_name",
        "--name pa-net-50-resnet-backbone-coco-2017-train2017-lr",
        "--name xai-shap-gradcam-comparison-2024-resnet50-imagenet",
        "--sort-key length_of_sequence_2024_longest_first",
        "--revision 4a5f6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6",
        "--resume runs/2024-11-27_12-33-21_resnet50_bs128_lr0.1/last.ckpt",
        "--signature v2",
        "--sig 0.05",
        "--sas model",
        "--token-dropout 0.1",
        "--key layer.0.weight",
    ],
)
def test_ordinary_arguments_stay_as_they_are(words):
    """A command with a masked argument cannot be run again by `check`, and no lock is made of it."""
    command = ("train.py", *words.split())
    assert Masker(command).command == command
    assert masked(words) == words


def test_a_key_that_is_a_uuid():
    assert Masker(("train.py", "--key", "123e4567-e89b-12d3-a456-426614174000")).command[-1] == "***"
