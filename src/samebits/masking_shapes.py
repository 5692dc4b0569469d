"""What secrets look like, whatever they are called: one line for each issuer.

The prefixes are those that the issuers document, and that secret scanners look for.
"""

from __future__ import annotations

import re

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
    *(
        "pass",
        "pwd",
        "secret",
        "token",
        "key",
        "auth",
        "bearer",
        "cred",
        "cookie",
        "jwt",
        "otp",
        "dsn",
        "sas",
        "sig",
    ),
    *("connection", "webhook", "login", "user", "://", "-----begin"),
    *(
        "hf_",
        "api_org_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "pat-",
        "akia",
        "asia",
        "aroa",
        "aida",
    ),
    *(
        "abia",
        "acca",
        "aiza",
        "ya29.",
        "gocspx-",
        "xox",
        "xapp-",
        "hooks.slack",
        "sk-",
        "k_live_",
        "k_test_",
        "gsk_",
    ),
    *(
        "wandb_v",
        "xai-",
        "pplx-",
        "tvly-",
        "r8_",
        "nvapi-",
        "lsv2_",
        "npm_",
        "pypi-",
        "dckr_pat_",
        "rubygems_",
    ),
    *(
        "dop_v1_",
        "dapi",
        "shpat_",
        "shpca_",
        "shppa_",
        "shpss_",
        "hvs.",
        "hvb.",
        "sg.",
        ":aa",
        "sq0",
        "lin_api_",
    ),
    *(
        "ntn_",
        "eyj",
        "gldt-",
        "glrt-",
        "glptt-",
        "glcbt-",
        "gloas-",
        "glsoat-",
        "glimt-",
        "glft-",
        "glagent-",
    ),
)


def is_suspect(text: str) -> bool:
    """Whether any of the rules can apply to a text: quick, because most texts hold nothing of the kind."""
    lowered = text.lower()
    return any(word in lowered for word in _SUSPECT)
