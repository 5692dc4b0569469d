"""The shapes of keys and tokens that are secrets wherever they stand, by who issues them.

The beginnings and lengths are facts that the issuers document, or that their keys show. A beginning of two or
three letters is common in names, so it counts only with the whole length of a key.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Shape(NamedTuple):
    """What the keys of one issuer look like.

    Args:
        issuer: who issues them.
        beginnings: one of them is in every such key; in small letters.
        pattern: a regular expression of the whole key.
    """

    issuer: str
    beginnings: tuple[str, ...]
    pattern: str


def _shape(issuer: str, beginnings: str, pattern: str) -> Shape:
    return Shape(issuer, tuple(beginnings.split()), pattern)


SHAPES = (
    # hubs of models and data
    _shape("Hugging Face", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{16,}"),
    _shape("Kaggle", "kgat_", r"KGAT_[A-Za-z0-9]{24,}"),
    _shape("Replicate", "r8_", r"r8_[A-Za-z0-9]{20,}"),
    _shape("Roboflow", "rf_", r"rf_[A-Za-z0-9]{20,}"),
    # trackers of experiments; W&B's older keys are 40 hexadecimal digits, Comet's 25 letters: found by name
    _shape("Weights & Biases", "wandb_v", r"wandb_v\d+_\w{16,}"),
    _shape("LangSmith", "lsv2_ ls__", r"lsv2_\w{16,}|ls__[0-9a-f]{30,}"),
    _shape("Langfuse", "lf-", r"[sp]k-lf-[0-9a-f\-]{30,}"),
    _shape("Prefect", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{30,}"),
    # language models
    _shape(
        "OpenAI, Anthropic and others",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|None|ant|or)-[\w\-]{16,}|[A-Za-z0-9]{20,}[\w\-]*)",
    ),
    _shape("Groq", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    _shape("xAI", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    _shape("Perplexity", "pplx-", r"pplx-[A-Za-z0-9]{30,}"),
    _shape("NVIDIA", "nvapi-", r"nvapi-[\w\-]{20,}"),
    _shape("Tavily", "tvly-", r"tvly-[\w\-]{16,}"),
    _shape("Together", "tgp_v", r"tgp_v\d+_[\w\-]{20,}"),
    _shape("Fireworks", "fw_", r"fw_(?=[A-Za-z]*[0-9])[A-Za-z0-9]{22,}"),
    _shape("Cerebras", "csk-", r"csk-[a-z0-9]{30,}"),
    _shape("Pinecone", "pcsk_", r"pcsk_\w{20,}"),
    _shape("Jina", "jina_", r"jina_[0-9a-f]{20,}[\w\-]*"),
    _shape("ElevenLabs", "sk_", r"sk_[0-9a-f]{40,}"),
    _shape("Firecrawl", "fc-", r"fc-[0-9a-f]{32}"),
    _shape("Voyage", "pa-", r"pa-(?=[\w\-]*[0-9])(?=[\w\-]*[A-Z])(?=[\w\-]*[a-z])[\w\-]{40,}"),
    _shape("RunPod", "rpa_", r"rpa_[A-Za-z0-9]{30,}"),
    _shape("Modal", "ak- as-", r"a[ks]-(?=[A-Za-z]*[0-9])[A-Za-z0-9]{20,24}(?![\w\-])"),
    # code, packages, images
    _shape(
        "GitHub", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}"
    ),
    _shape(
        "GitLab",
        "glpat- gldt- glrt- glptt- glcbt- gloas- glsoat- glimt- glft- glffct- glagent- gr1348941",
        r"gl(?:pat|dt|rt|ptt|cbt|oas|soat|imt|ft|ffct|agent)-[\w.\-]{16,}|GR1348941[\w\-]{16,}",
    ),
    _shape("Atlassian", "atatt3 atctt3 atbb", r"AT[AC]TT3[\w\-=]{24,}|ATBB[A-Za-z0-9]{28,}"),
    _shape("npm", "npm_", r"npm_[A-Za-z0-9]{20,}"),
    _shape("PyPI", "pypi-", r"pypi-(?=[A-Za-z_\-]*[0-9A-Z])[\w\-]{20,}"),
    _shape("Docker Hub", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[\w\-]{16,}"),
    _shape("RubyGems", "rubygems_", r"rubygems_[0-9a-f]{20,}"),
    _shape("Artifactory", "akcp cmvmd", r"AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{50,}"),
    _shape("Sourcegraph", "sgp_", r"sgp_\w{30,}"),
    _shape("Postman", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{30,}"),
    # clouds
    _shape("AWS", "akia asia aroa aida abia acca", r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[0-9A-Z]{16}"),
    _shape("Amazon Bedrock", "absk bedrock-api-key-", r"ABSK[\w+/=]{60,}|bedrock-api-key-[\w+/=]{20,}"),
    _shape("Google", "aiza ya29. gocspx-", r"AIza[\w\-]{30,}|ya29\.[\w\-]{16,}|GOCSPX-[\w\-]{16,}"),
    _shape("Azure", "q~", r"[\w.~\-]{3}\dQ~[\w.~\-]{31,34}"),
    _shape("Alibaba Cloud", "ltai", r"LTAI[A-Za-z0-9]{16,}"),
    _shape("Tencent Cloud", "akid", r"AKID[A-Za-z0-9]{32}"),
    _shape("Yandex Cloud", "aqvn t1.", r"AQVN[\w\-]{34,}|t1\.[\w\-]{8,}={0,2}\.[\w\-]{80,}={0,2}"),
    _shape("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{32,}"),
    _shape("Databricks", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _shape("Heroku", "hrku-", r"HRKU-[\w\-]{30,}"),
    _shape("Fly.io", "fo1_ fm1a_ fm1r_ fm2_", r"fo1_[\w\-]{40,}|fm(?:1[ar]|2)_[\w+/=]{60,}"),
    _shape("Supabase", "sbp_", r"sbp_[0-9a-f]{40}"),
    _shape("PlanetScale", "pscale_", r"pscale_(?:tkn|oauth|pw)_[\w=.\-]{20,}"),
    _shape("HashiCorp", "hvs. hvb. .atlasv1.", r"hv[sb]\.[\w\-]{16,}|[A-Za-z0-9]{14}\.atlasv1\.[\w\-=]{40,}"),
    _shape("Pulumi", "pul-", r"pul-[0-9a-f]{40}"),
    _shape("Doppler", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.]{32,}"),
    _shape("1Password", "a3- ops_eyj", r"A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}|ops_eyJ[\w+/=]{60,}"),
    _shape("age", "age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    # messages, money, watching
    _shape(
        "Slack",
        "xox xapp- hooks.slack",
        r"xox[a-z][\-.][\w\-.]{8,}|xapp-[\w\-]{16,}|hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]+",
    ),
    _shape("Discord", "discord", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[\w\-]{20,}"),
    _shape(
        "Discord",
        ".",
        r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.(?=[A-Za-z_\-]*[0-9])[\w\-]{27,38}(?![\w\-])",
    ),
    _shape("Telegram", ":aa", r"\d{8,10}:AA[A-Za-z0-9_\-]{33}"),
    _shape("Teams", "webhook.office", r"[a-z0-9]+\.webhook\.office\.com/webhookb2/[\w@/\-]+"),
    _shape("Twilio", "sk", r"SK[0-9a-f]{32}(?!\w)"),
    _shape("SendGrid", "sg.", r"SG\.[\w\-]{16,}\.[\w\-]{16,}"),
    _shape("Mailgun", "key-", r"key-[0-9a-f]{32}"),
    _shape("Mailchimp", "-us", r"[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    _shape("Brevo", "xkeysib-", r"xkeysib-[0-9a-f]{60,}(?:-\w+)?"),
    _shape(
        "Stripe", "k_live_ k_test_ k_prod_ whsec_", r"[rsp]k_(?:live|test|prod)_\w{10,}|whsec_[\w+/=]{24,}"
    ),
    _shape("Square", "sq0", r"sq0[a-z]{3}-[\w\-]{20,}"),
    _shape("Shopify", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{20,}"),
    _shape("Meta", "eaa", r"EAA[A-Z][A-Za-z0-9]{100,}"),
    _shape("Notion", "ntn_ secret_", r"ntn_\w{20,}|secret_(?=[A-Za-z]*[0-9])[A-Za-z0-9]{30,}"),
    _shape("Linear", "lin_api_", r"lin_api_\w{20,}"),
    _shape("Airtable", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _shape("Grafana", "glsa_ glc_", r"glsa_[A-Za-z0-9]{24,}\w*|glc_[A-Za-z0-9+/=]{32,}"),
    _shape("Sentry", "sntrys_ sntryu_", r"sntry[su]_[\w+/=]{32,}"),
    _shape("New Relic", "nrak- nrii- nrjs-", r"NR(?:AK|II|JS)-[A-Za-z0-9\-]{19,}"),
    _shape("Dynatrace", "dt0c01.", r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{60,}"),
    # A JSON Web Token; Neptune's keys are its first part alone, longer.
    _shape("JSON Web Token", "eyj", r"eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?"),
    _shape("Neptune", "eyjhcglfywrkcmvzcyi6", r"eyJhcGlfYWRkcmVzcyI6[\w+/=\-]{20,}"),
)

# In the middle of a word a key does not begin, but after an escape (`\\n`, `%3D`, a colour) it does.
_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9]m))"


def without_keys(text: str, instead: str) -> str:
    """Return a text with another word in place of each key whose shape is known."""
    lowered = text.lower()
    for shape in SHAPES:
        if any(beginning in lowered for beginning in shape.beginnings):
            text = re.sub(f"{_START}(?:{shape.pattern})", instead, text)  # `re` keeps what it compiled
    return text
