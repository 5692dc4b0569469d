"""Masking of secrets in everything that samebits writes (docs/reference/privacy.md).

Three things give a secret away: the name that it is given under (`--token X`, `HF_TOKEN=X`),
its position (the password of a URL, a header, a login call), and its own shape (`hf_…`, `ghp_…`). A value
that was found by its name is masked wherever else it appears, in the text of an exception for example.

A masked value leaves nothing behind, not even a digest: a short password can be guessed from its digest.
"""

from __future__ import annotations

import functools
import re
from itertools import chain, count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MASK = "***"
NOT_RECORDED = "(arguments not recorded)"
"""Stands for all arguments of a command that was run with `--no-arguments`."""

_SHORTEST = 4  # characters of a known value that is looked for in messages
_LONG = 8  # … and in all texts
_NAME = re.compile(r"[A-Za-z][\w.\-]{0,80}")
_BETWEEN = re.compile(r"[\"']?\s{0,3}[=:]\s{0,3}")
_VALUE = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;&)}\]]+")
_OPTION = re.compile(r"(?P<name>(?<!\S)--?[A-Za-z][\w.\-]{0,80})(?P<between>\s+)(?P<value>[^\s-]\S*)")
_LOGINS = ("user", "userpass", "login", "userpwd", "u")


class Masker:
    """Masks the secrets of one run.

    Args:
        command: the script or `-m module` and its arguments.
        variables: environment; the values of those that are named as secrets are masked in texts.
        no_arguments: mask all arguments.

    Attributes:
        command: the command, masked.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        *,
        no_arguments: bool = False,
    ) -> None:
        known: set[str] = set()
        self.command = _masked_command(command, known)
        start = 2 if list(command[:1]) == ["-m"] else 1
        for name, value in (variables or {}).items():
            if _is_secret(name, value):
                known.add(value)
        self._everywhere = _any_of(value for value in known if len(value) >= _LONG)
        if no_arguments:
            known.update(command[start:])
            rest = (NOT_RECORDED,) if len(command) > start else ()
            self.command = (*self.command[:start], *rest)
        self._in_messages = _any_of(known)

    def text(self, text: str) -> str:
        """Mask the secrets in a name, a path or the like."""
        if self._everywhere is not None:
            text = self._everywhere.sub(MASK, text)
        return masked(text)

    def message(self, text: str) -> str:
        """Mask the secrets in an error or a note: short values of arguments too."""
        if self._in_messages is not None:
            text = self._in_messages.sub(MASK, text)
        return self.text(text)

    def value(self, value: Any) -> Any:
        """Mask the secrets in the texts of a JSON value, and what a mapping names as a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._table(value)
        if isinstance(value, (list, tuple)):
            return type(value)([self.value(each) for each in value])
        return value

    def _table(self, table: dict[Any, Any]) -> dict[Any, Any]:
        """Mask names and values; names that are the same once they are masked get numbers."""
        shown: dict[Any, Any] = {}
        for name, value in table.items():
            masked_name = self.value(name)
            numbered = (f"{masked_name} ({number})" for number in count(2))
            free = next(each for each in chain((masked_name,), numbered) if each not in shown)
            shown[free] = self._item(name, value)
        return shown

    def _item(self, name: Any, value: Any) -> Any:
        if isinstance(name, str) and isinstance(value, str) and _is_secret(name, value):
            return MASK
        return self.value(value)


def masked(text: str) -> str:
    """Mask what looks like a secret in a text."""
    if not _is_suspect(text):
        return text
    text = _BLOCK.sub(MASK, text)
    text = _URL_USER.sub(_without_user, text)
    text = _HEADER.sub(lambda match: f"{match['head']}{MASK}", text)
    text = _OPTION.sub(_without_value, _without_pairs(text))
    text = _LOGIN_CALL.sub(_without_argument, text)
    return _SHAPES.sub(MASK, text)


def _masked_command(command: Sequence[str], known: set[str]) -> tuple[str, ...]:
    """Mask the secrets among the arguments of a command, and add them to `known`."""
    masked_arguments: list[str] = []
    option = ""  # the option whose value the next argument is
    for argument in command:
        name, equals, value = argument.partition("=")
        if option and not (argument.startswith("-") and len(argument) > 1) and _is_secret(option, argument):
            known.add(argument)
            masked_arguments.append(MASK)
        elif equals and _is_secret(name, value):
            known.add(value.strip("\"'"))
            masked_arguments.append(f"{name}={MASK}")
        elif (_name_parts(option) or [""])[-1] in _LOGINS and ":" in argument and "://" not in argument:
            user, _, password = argument.partition(":")
            known.add(password)
            masked_arguments.append(f"{user}:{MASK}")
        else:
            masked_arguments.append(masked(argument))
        option = argument if argument.startswith("-") and not equals else ""
    return tuple(masked_arguments)


def _is_secret(name: str, value: str) -> bool:
    """Tell whether that value, given under that name, is a secret."""
    value = value.strip("\"'")
    if not value or value == MASK or _is_plain(value):
        return False
    if _is_secret_name(name):
        return not _is_flag(name) and (_is_strong_name(name) or not _is_ordinary(value))
    parts = _name_parts(name)
    return bool(parts) and parts[-1] in ("key", "token") and _looks_random(value)


def _without_pairs(text: str) -> str:
    """Mask the values of `name=value` and `name: value` whose names are names of secrets."""
    parts: list[str] = []
    done = position = 0
    while (name := _NAME.search(text, position)) is not None:
        position = name.end()
        between = (
            _BETWEEN.match(text, position)
            if _is_secret_name(name[0]) or _name_parts(name[0])[-1:] == ["key"]
            else None
        )
        value = _VALUE.match(text, between.end()) if between is not None else None
        if value is not None and _is_secret(name[0], value[0]):
            quote = value[0][0] if value[0][0] in "\"'" else ""
            parts += [text[done : value.start()], quote, MASK, quote]
            done = position = value.end()
    return "".join([*parts, text[done:]])


def _without_value(match: re.Match[str]) -> str:
    value = match["value"]
    if not _is_secret(match["name"], value):
        return match[0]
    return f"{match['name']}{match['between']}{MASK}"


def _without_argument(match: re.Match[str]) -> str:
    return f"{match['head']}{MASK}" if _looks_random(match["value"]) else match[0]


def _without_user(match: re.Match[str]) -> str:
    """Mask the password of a URL, and a user name that is a token (with http it always is)."""
    user, password = match["user"], match["password"]
    if password is not None:
        return f"{match['scheme']}{user}:{MASK}@"
    is_token = match["scheme"].lower().startswith("http") and user.lower() != "git"
    return f"{match['scheme']}{MASK if is_token else user}@"


def _any_of(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern of these values, the longest first; short ones match as whole words only."""
    chosen = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)
    patterns = [
        value if len(value) >= _LONG else rf"(?<!\w){value}(?!\w)" for value in map(re.escape, chosen)
    ]
    return re.compile("|".join(patterns)) if patterns else None


# ---- what a secret looks like: the name that it is given under, and its shape


def _words(text: str) -> frozenset[str]:
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
    "token", "pwd", "pass", "auth", "bearer", "jwt", "otp", "cookie", "cookies", "sas", "sig", "signature",
)  # fmt: skip
# What stands before `token` in the vocabulary of models.
_OF_MODELS = _words("""
pad padding bos eos sos eot unk unknown sep cls class mask masked special stop start end begin image
img video audio speech text word subword new newline line first last max min num per n next prev
prefix suffix think thinking tool distill register summary placeholder blank dummy null empty
delimiter separator decoder encoder trigger instance speaker no drop by target source src tgt lang
language memory mem pooling query extra added additional control task domain style boundary time
step patch region visual latent object point action state reward learnable learned cross self sum
sink global local single every each total k top rare common modality
""")
# As the last part of a name they say that the value is something about the secret, and not the secret.
_ABOUT = _words("""
file path dir folder env name type count size length len dim dims index idx limit number num url
host id ids mode method scheme format style timeout expiry ttl rate weight weights loss dropout prob
ratio embedding embeddings
""")
_FLAGS = _words("""
use no enable disable with without has require requires skip allow ask prompt print show is
""")
_PLAIN = _words("""
true false none null yes no on off auto default basic digest ntlm netrc env prompt required optional
bearer
""")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?")
_PLACEHOLDER = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\$\{?\w+\}?|\*+|\.{2,}|[^A-Za-z0-9]*")


@functools.lru_cache(maxsize=1024)
def _name_parts(name: str) -> list[str]:
    """Split a name into words: `--hfToken` is hf, token."""
    return [part.lower() for part in _SEPARATOR.split(_CAMEL.sub("_", name)) if part]


@functools.lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    """Tell whether a value that is given under that name is a secret."""
    parts = _name_parts(name)
    if not parts or parts[-1] in _ABOUT:
        return False
    if _is_strong_name(name):
        return True
    if parts[-1] == "token" and len(parts) > 1 and parts[-2] in _OF_MODELS:
        return False
    return parts[-1] in _LAST or parts == ["dsn"]


@functools.lru_cache(maxsize=1024)
def _is_strong_name(name: str) -> bool:
    """Tell whether every value given under that name is a secret, numbers and paths included."""
    joined = "".join(_name_parts(name))
    return any(word in joined for word in _STRONG)


def _is_ordinary(value: str) -> bool:
    """Tell whether a value is more likely a short number (`--token 3`) or a path (`PWD=/home/me`)."""
    return value.startswith(("/", "./", "../", "~/")) or (
        len(value) <= 5 and _NUMBER.fullmatch(value) is not None
    )


def _is_flag(name: str) -> bool:
    """Tell whether an option takes no value, by its name: `--use-auth-token`."""
    return _name_parts(name)[0] in _FLAGS


def _is_plain(value: str) -> bool:
    """Tell whether a value cannot be a secret: a word such as `true`, `<pad>` or the like, punctuation."""
    return value.lower() in _PLAIN or _PLACEHOLDER.fullmatch(value) is not None


def _looks_random(value: str) -> bool:
    """Tell whether a value is long and mixed enough to be made by a generator."""
    if re.fullmatch(r"[A-Za-z0-9+/=_\-]{20,}", value) is None or _NUMBER.fullmatch(value):
        return False
    digits = sum(character.isdigit() for character in value)
    return digits >= 2 and len(set(value)) >= 8 and digits < len(value)


_SHAPE_PATTERNS = (
    r"hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}",  # Hugging Face
    r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}",  # GitHub
    r"gl(?:pat|dt|rt|ptt|cbt|oas|soat|imt|ft|agent)-[\w.\-]{16,}",  # GitLab
    r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[0-9A-Z]{16}",  # AWS
    r"AIza[\w\-]{30,}|ya29\.[\w\-]{16,}|GOCSPX-[\w\-]{16,}",  # Google
    r"xox[a-z]-[\w\-]{8,}|xapp-[\w\-]{16,}|hooks\.slack\.com/services/[\w/]+",  # Slack
    r"sk-[\w\-]{16,}|[rsp]k_(?:live|test)_\w{10,}",  # OpenAI, Anthropic and others; Stripe
    r"wandb_v\d+_\w{16,}",  # Weights & Biases; the older keys are 40 hexadecimal digits, found by name only
    r"gsk_\w{20,}|xai-\w{20,}|pplx-\w{20,}|tvly-[\w\-]{16,}|r8_\w{20,}|nvapi-[\w\-]{20,}|lsv2_\w{16,}",
    r"npm_[A-Za-z0-9]{20,}|pypi-[\w\-]{20,}|dckr_pat_[\w\-]{16,}|rubygems_[0-9a-f]{20,}",
    r"dop_v1_[0-9a-f]{32,}|dapi[0-9a-f]{32}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{20,}|hv[sb]\.[\w\-]{16,}",
    r"SG\.[\w\-]{16,}\.[\w\-]{16,}|key-[0-9a-f]{32}|\d{8,10}:AA[A-Za-z0-9_\-]{33}",
    r"sq0[a-z]{3}-[\w\-]{20,}|AGE-SECRET-KEY-1[0-9A-Z]{20,}|lin_api_\w{20,}|ntn_\w{20,}|secret_\w{30,}",
    r"eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?",  # JSON Web Token
)
_SHAPES = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_SHAPE_PATTERNS)})")

_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*-----|\Z)")
_HEADER = re.compile(
    r"(?P<head>\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[A-Za-z]{2,20}\s+)?|\bbearer\s+)[^\s\"',;]+",
    re.IGNORECASE,
)
# The first argument; in a patch a sign can stand before it on a line of its own.
_LOGIN_CALL = re.compile(
    r"(?P<head>(?<![A-Za-z])(?:login|authenticate|set_api_key|set_api_token)\([\s+\-]{0,80}[\"'])"
    r"(?P<value>[^\"'\n]{20,300})(?=[\"'])",
)
_URL_USER = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]{0,30}://)(?P<user>[^\s/:@\"'?#]{0,300})(?::(?P<password>[^\s/\"'?#]{0,300}))?@"
)

_SUSPECT = (
    "pass", "pwd", "secret", "token", "key", "auth", "bearer", "cred", "cookie", "jwt", "otp", "dsn", "sas",
    "sig", "connection", "webhook", "login", "user", "://", "-----begin", "hf_", "api_org_", "ghp_", "gho_",
    "ghu_", "ghs_", "ghr_", "github_pat_", "pat-", "akia", "asia", "aroa", "aida", "abia", "acca", "aiza",
    "ya29.", "gocspx-", "xox", "xapp-", "hooks.slack", "sk-", "k_live_", "k_test_", "gsk_", "wandb_v",
    "xai-", "pplx-", "tvly-", "r8_", "nvapi-", "lsv2_", "npm_", "pypi-", "dckr_pat_", "rubygems_",
    "dop_v1_", "dapi", "shpat_", "shpca_", "shppa_", "shpss_", "hvs.", "hvb.", "sg.", ":aa", "sq0",
    "lin_api_", "ntn_", "eyj", "gldt-", "glrt-", "glptt-", "glcbt-", "gloas-", "glsoat-", "glimt-", "glft-",
    "glagent-",
)  # fmt: skip


def _is_suspect(text: str) -> bool:
    """Tell quickly whether any rule can apply to a text: most texts hold nothing of the kind."""
    lowered = text.lower()
    return any(word in lowered for word in _SUSPECT)
