"""The names that secrets are given under, and the values that such a name does not make a secret."""

from __future__ import annotations

import functools
import re

MASK = "***"


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# Anywhere in a name, its separators left out.
_STRONG = (
    "password", "passwd", "passphrase", "passcode", "secret", "credential", "authorization",
    "connectionstring", "apikey", "accesskey", "privatekey", "authkey", "accountkey", "signingkey",
    "encryptionkey", "masterkey", "sharedkey", "servicekey", "clientkey", "licensekey", "subscriptionkey",
    "deploykey", "userkey", "wandbkey", "hfkey", "openaikey", "anthropickey", "cometkey", "neptunekey",
    "kagglekey", "azurekey", "awskey", "accesstoken", "authtoken", "apitoken", "refreshtoken",
    "sessiontoken", "bearertoken", "csrftoken",
)  # fmt: skip
# As the last part of a name.
_LAST = (
    "token", "pwd", "pw", "pass", "creds", "auth", "bearer", "jwt", "otp", "cookie", "cookies", "sas", "sig",
    "signature",
)  # fmt: skip
# Of them, those whose secrets come from generators: in code, a plain word under such a name is no secret.
_GENERATED = ("token", "auth", "sig", "signature", "sas", "cookie", "cookies", "bearer", "pass")
# Only what looks random is a secret under these.
_NEUTRAL = (["key"], ["keys"], ["token"], ["tokens"])
# Of them, those whose secrets are long: `--signature v2` is none.
_LONG_ONES = ("sas", "sig", "signature")
_SHORTEST_SIGNATURE = 8  # characters
# What stands before `token` in the vocabulary of models.
_OF_MODELS = words("""
pad padding bos eos sos eot unk unknown sep cls class mask masked special stop start end begin image
img video audio speech text word subword new newline line first last max min num per n next prev
prefix suffix think thinking tool distill register summary placeholder blank dummy null empty
delimiter separator decoder encoder trigger instance speaker no drop by target source src tgt lang
language memory mem pooling query extra added additional control task domain style boundary time
step patch region visual latent object point action state reward learnable learned cross self sum
sink global local single every each total k top rare common modality page
""")
# As the last part of a name they say that the value is something about the secret, and not the secret.
_ABOUT = words("""
file path dir folder env name type count size length len dim dims index idx limit number num url
host id ids mode method scheme format style timeout expiry ttl rate weight weights loss dropout prob
ratio embedding embeddings version error provider required enabled
prefix suffix var vars field store ref refs json yaml yml toml txt ini
""")
# Beside a secret, in the same table: they say whose it is, and are none.
_BESIDE = words(
    "user username login email project region provider kind description help title algorithm audience issuer"
)
_FLAGS = words("""
use no enable disable with without has require requires skip allow ask prompt print show is
""")
_PLAIN = words("""
true false none null yes no on off auto default basic digest ntlm netrc env prompt required optional
bearer
""")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?")
_PLACEHOLDER = re.compile(
    r"\$?\{\{[^{}]*\}\}|\$\{(?:oc\.)?env:\w+(?:, ?(?:null|None))?\}"
    r"|<[^<>]*>|\[[^\[\]]*\]|\$\{?\w+\}?|\*+|\.{2,}|%\(?\w*\)?[srd]|[^A-Za-z0-9]*"
)
_FIELD = re.compile(r"\{[^{}]*\}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SCHEME = re.compile(r"(?:basic|bearer|token)\s+(?=\S)", re.IGNORECASE)
_ONE_WORD = re.compile(
    r"[^A-Za-z0-9]*(?:[A-Za-z][a-z]*(?:[A-Z][a-z]+)*(?:[_\-][a-z]+)*|[A-Z]+(?:_[A-Z]+)*)[^A-Za-z0-9]*|\\u[0-9a-f]{4}"
)


def is_secret(name: str, value: str) -> bool:
    """Tell whether that value, given under that name, is a secret."""
    value = _SCHEME.sub("", value.strip("\"'`"))
    if not value or value == MASK or is_plain(value):
        return False
    parts = name_parts(name)
    if is_secret_name(name):
        return not _is_flag(name) and (_is_strong_name(name) or not _is_ordinary(parts[-1], value))
    return parts[-1:] in _NEUTRAL and (looks_generated(value) or _is_uuid(value))


def is_secret_literal(name: str, value: str) -> bool:
    """Tell whether a string that source code gives that name is a secret: `token = "the"` is none.

    Args:
        name: such as `api_key` or `HF_TOKEN`.
        value: the string, without its quotes.
    """
    if not is_secret(name, value) or value.startswith("-") or _is_like(name, value):
        return False
    if _FIELD.search(value) is not None:  # of a template; what stands around may still be a part of one
        return any(map(looks_random, re.split(r"[\s.:;,]", _FIELD.sub(" ", value))))
    if is_weak_name(name):
        is_prose = " " in value and "=" not in value
        return not is_prose and not is_one_word(value)
    return not name.startswith("secrets.") or looks_random(value)  # of the module: `secrets.choice`


def is_weak_name(name: str) -> bool:
    """Tell whether a plain word under that name is no secret where it may be code, such as `token`."""
    return name_parts(name)[-1] in _GENERATED and not _is_strong_name(name)


def is_about(name: str) -> bool:
    """Tell whether an entry of a table of secrets has none: `user`, `region`, `type`."""
    return not {*name_parts(name)[-1:]}.isdisjoint(_ABOUT | _BESIDE)


def looks_like_password(value: str) -> bool:
    """Tell whether a string among the arguments of any call can be a password: a word with digits."""
    if re.search(r"\s|[/\\(\[{]|\.[a-z]{2,5}\Z", value):
        return False
    return any(
        len(part) >= 8 and re.search(r"[0-9]", part) and re.search(r"[A-Za-z]", part)
        for part in re.split(r"[\-_.:]", value)
    )


def is_one_word(value: str) -> bool:
    """Tell whether a value is a plain word or name, such as `upgrades` or `serving_default`."""
    return _ONE_WORD.fullmatch(value) is not None


def _is_like(name: str, value: str) -> bool:
    """Tell whether a value repeats its name: `TOKEN = "token"`."""
    return name_parts(name.rpartition(".")[2]) == name_parts(value)


@functools.lru_cache(maxsize=16384)
def name_parts(name: str) -> list[str]:
    """Split a name into words: `--hfToken` is hf, token."""
    return [part.lower() for part in _SEPARATOR.split(_CAMEL.sub("_", name)) if part]


@functools.lru_cache(maxsize=16384)
def is_secret_name(name: str) -> bool:
    """Tell whether a value that is given under that name is a secret."""
    parts = name_parts(name)
    if not parts or parts[-1] in _ABOUT:
        return False
    if _is_strong_name(name):
        return True
    if parts[-1] == "token" and len(parts) > 1 and parts[-2] in _OF_MODELS:
        return False
    return parts[-1] in _LAST or parts == ["dsn"]


@functools.lru_cache(maxsize=16384)
def can_name_a_secret(name: str) -> bool:
    """Tell whether some value under that name is a secret: under `key`, one that looks random is."""
    return is_secret_name(name) or name_parts(name)[-1:] in _NEUTRAL


@functools.lru_cache(maxsize=16384)
def _is_strong_name(name: str) -> bool:
    """Tell whether every value given under that name is a secret, numbers and paths included."""
    joined = "".join(name_parts(name))
    return any(word in joined for word in _STRONG)


def _is_ordinary(last: str, value: str) -> bool:
    """Tell whether a value is more likely a short number (`--token 3`), a path (`PWD=/home/me`) or a word.

    Args:
        last: the last part of its name.
        value: the value.
    """
    if last in _LONG_ONES and len(value) < _SHORTEST_SIGNATURE:
        return True
    return value.startswith(("/", "./", "../", "~/")) or (
        len(value) <= 5 and _NUMBER.fullmatch(value) is not None
    )


def _is_uuid(value: str) -> bool:
    """Tell whether a value is a UUID, as some issuers have them for keys."""
    return _UUID.fullmatch(value) is not None


def _is_flag(name: str) -> bool:
    """Tell whether an option takes no value, by its name: `--use-auth-token`."""
    return name_parts(name)[0] in _FLAGS


def is_plain(value: str) -> bool:
    """Tell whether a value cannot be a secret: a word such as `true`, `<pad>` or the like, punctuation."""
    return value.lower() in _PLAIN or _PLACEHOLDER.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Tell whether a value is long and mixed enough to be made by a generator."""
    if re.fullmatch(r"[A-Za-z0-9+/=_\-]{20,}", value) is None or _NUMBER.fullmatch(value):
        return False
    digits = sum(character.isdigit() for character in value)
    return digits >= 2 and len(set(value)) >= 8 and digits < len(value)


def looks_generated(value: str) -> bool:
    """Tell whether a value looks random and is no name made of words: `llama-3-70b-instruct-2024` is one."""
    return looks_random(value) and any(map(looks_random, re.split(r"[\-_/]", value)))
