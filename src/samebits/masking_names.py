"""Names under which secrets are given: of options, variables, keys of a mapping, headers."""

from __future__ import annotations

import functools
import re


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Anywhere in a name, its separators left out.
_STRONG = (
    *(
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "secret",
        "credential",
        "authorization",
        "connectionstring",
    ),
    *(
        "apikey",
        "accesskey",
        "privatekey",
        "authkey",
        "accountkey",
        "signingkey",
        "encryptionkey",
        "masterkey",
    ),
    *("sharedkey", "servicekey", "clientkey", "licensekey", "subscriptionkey", "deploykey", "userkey"),
    *(
        "wandbkey",
        "hfkey",
        "openaikey",
        "anthropickey",
        "cometkey",
        "neptunekey",
        "kagglekey",
        "azurekey",
        "awskey",
    ),
    *("accesstoken", "authtoken", "apitoken", "refreshtoken", "sessiontoken", "bearertoken", "csrftoken"),
)
# As the last part of a name.
_LAST = (
    "token",
    "pwd",
    "pass",
    "auth",
    "bearer",
    "jwt",
    "otp",
    "cookie",
    "cookies",
    "sas",
    "sig",
    "signature",
)
# What stands before `token` in the vocabulary of models.
_OF_MODELS = _set("""
pad padding bos eos sos eot unk unknown sep cls class mask masked special stop start end begin image
img video audio speech text word subword new newline line first last max min num per n next prev
prefix suffix think thinking tool distill register summary placeholder blank dummy null empty
delimiter separator decoder encoder trigger instance speaker no drop by target source src tgt lang
language memory mem pooling query extra added additional control task domain style boundary time
step patch region visual latent object point action state reward learnable learned cross self sum
sink global local single every each total k top rare common modality
""")
# As the last part of a name they say that the value is something about the secret, and not the secret.
_ABOUT = _set("""
file path dir folder env name type count size length len dim dims index idx limit number num url
host id ids mode method scheme format style timeout expiry ttl rate weight weights loss dropout prob
ratio embedding embeddings
""")
_FLAGS = _set("""
use no enable disable with without has require requires skip allow ask prompt print show is
""")
_PLAIN = _set("""
true false none null yes no on off auto default basic digest ntlm netrc env prompt required optional
bearer
""")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?")
_PLACEHOLDER = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\$\{?\w+\}?|\*+|\.{2,}|[^A-Za-z0-9]*")


@functools.lru_cache(maxsize=1024)
def name_parts(name: str) -> list[str]:
    """The words of a name: `--hfToken` is hf, token."""
    return [part.lower() for part in _SEPARATOR.split(_CAMEL.sub("_", name)) if part]


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether what is given under that name is a secret."""
    parts = name_parts(name)
    if not parts or parts[-1] in _ABOUT:
        return False
    if is_strong_name(name):
        return True
    if parts[-1] == "token" and len(parts) > 1 and parts[-2] in _OF_MODELS:
        return False
    return parts[-1] in _LAST or parts == ["dsn"]


@functools.lru_cache(maxsize=1024)
def is_strong_name(name: str) -> bool:
    """Whether nothing but a secret is given under that name, numbers and paths included."""
    joined = "".join(name_parts(name))
    return any(word in joined for word in _STRONG)


def is_ordinary(value: str) -> bool:
    """Whether a value is more likely a short number (`--token 3`) or a path (`PWD=/home/me`)."""
    return value.startswith(("/", "./", "../", "~/")) or (
        len(value) <= 5 and _NUMBER.fullmatch(value) is not None
    )


def is_flag(name: str) -> bool:
    """Whether an option takes no value, by its name: `--use-auth-token`."""
    return name_parts(name)[0] in _FLAGS


def is_plain(value: str) -> bool:
    """Whether a value cannot be a secret: a word such as `true`, `<pad>` or the like, punctuation."""
    return value.lower() in _PLAIN or _PLACEHOLDER.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Whether a value is long and mixed enough to be made by a generator."""
    if re.fullmatch(r"[A-Za-z0-9+/=_\-]{20,}", value) is None or _NUMBER.fullmatch(value):
        return False
    digits = sum(character.isdigit() for character in value)
    return digits >= 2 and len(set(value)) >= 8 and digits < len(value)
