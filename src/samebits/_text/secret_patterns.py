"""Rules that recognise secrets by the name that they are given under, and by their shape."""

from __future__ import annotations

import functools
import re


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
def name_parts(name: str) -> list[str]:
    """Split a name into words: `--hfToken` is hf, token."""
    return [part.lower() for part in _SEPARATOR.split(_CAMEL.sub("_", name)) if part]


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Tell whether a value that is given under that name is a secret."""
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
    """Tell whether every value given under that name is a secret, numbers and paths included."""
    joined = "".join(name_parts(name))
    return any(word in joined for word in _STRONG)


def is_ordinary(value: str) -> bool:
    """Tell whether a value is more likely a short number (`--token 3`) or a path (`PWD=/home/me`)."""
    return value.startswith(("/", "./", "../", "~/")) or (
        len(value) <= 5 and _NUMBER.fullmatch(value) is not None
    )


def is_flag(name: str) -> bool:
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


_SHAPES = (
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
SHAPES = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_SHAPES)})")

BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*-----|\Z)")
HEADER = re.compile(
    r"(?P<head>\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[A-Za-z]{2,20}\s+)?|\bbearer\s+)[^\s\"',;]+",
    re.IGNORECASE,
)
URL_USER = re.compile(
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


def is_suspect(text: str) -> bool:
    """Tell quickly whether any rule can apply to a text: most texts hold nothing of the kind."""
    lowered = text.lower()
    return any(word in lowered for word in _SUSPECT)
