"""Keys among the arguments of a call such as `login("…")` or `Client("…")`, which has no name for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits._text.secret_names import MASK, is_secret_literal, looks_generated, name_parts, words
from samebits._text.string_literals import SPACE, Part, literals

if TYPE_CHECKING:
    from collections.abc import Iterator

# The last word of the name of a call whose string is a key if it looks like one.
_CALLS = words(
    """
    login authenticate authorize auth client session connect connection api account bot credential
    credentials token key secret password sdk hub gateway provider experiment github gitlab openai
    anthropic cohere mistral groq together replicate pinecone roboflow perplexity databricks
    neptune comet kaggle twilio telegram discord slack sendgrid stripe deepgram elevenlabs voyage
    tavily serp exa notion airtable sentry huggingface hf wandb clearml labelbox modal runpod vast
    lambda
    """
)
# Calls whose string is a secret, whatever it looks like: the first, or the second after a user.
_OF_A_SECRET = words("secretstr setpassword setsecret settoken setapikey")
_OF_A_PAIR = words("httpbasicauth httpdigestauth basicauth httpproxyauth")
_CALL = re.compile(
    r"(?<![\w])(?:[\w.]{0,80}\.)?(?P<callee>[A-Za-z_]\w{0,60})\((?=[^()\n]{0,120}\n?[^()]{0,300}?[\"'])"
)
_VERSION = re.compile(r"[Vv]?\d*\Z")
_POSITIONAL = re.compile(rf"(?<=[(,]){SPACE}(?=[rbuf]?\\?[\"'])")
_ARGUMENTS = 400  # characters after the bracket that are looked at


def without_call_arguments(text: str) -> str:
    """Mask strings that look like keys among the arguments of a call such as `login(` or `Client(`."""
    pieces: list[str] = []
    done = 0
    for call in _CALL.finditer(text):
        for part in _secret_arguments(text, call):
            if part.start >= done:
                pieces += [text[done : part.start], MASK]
                done = part.end
    return "".join([*pieces, text[done:]])


def _secret_arguments(text: str, call: re.Match[str]) -> Iterator[Part]:
    joined = "".join(name_parts(call["callee"]))
    last = name_parts(_VERSION.sub("", call["callee"]))[-1:]
    if not {joined, *last} & (_CALLS | _OF_A_SECRET | _OF_A_PAIR):
        return
    for index, part in enumerate(_positional(text, call.end())):
        value = text[part.start : part.end]
        is_given = (joined in _OF_A_SECRET and index == 0) or (joined in _OF_A_PAIR and index == 1)
        if looks_generated(value) or (is_given and is_secret_literal("password", value)):
            yield part


def _positional(text: str, start: int) -> Iterator[Part]:
    """Yield the strings among the arguments of a call that no parameter is named for."""
    closing = text.find(")", start, start + _ARGUMENTS)
    end = closing if closing >= 0 else min(len(text), start + _ARGUMENTS)
    position = start
    while (found := _POSITIONAL.search(text, position, end)) is not None:
        position = found.end() + 1
        for part in literals(text, found.end()):
            position = part.end + 1
            yield part
