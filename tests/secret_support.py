"""Made-up keys of every shape that samebits knows.

They are put together when a test runs, so that no scanner takes a file of this repository for a leak.
"""

from __future__ import annotations

import random
import string

HEX = string.digits + "abcdef"
CAPITALS = string.digits + string.ascii_uppercase
SMALL = string.digits + string.ascii_lowercase
MIXED = string.digits + string.ascii_letters
LETTERS = string.ascii_letters
URL = MIXED + "_-"

# Beginning, alphabet and length of what follows, ending; of more parts, each with its own.
_PARTS = {
    "Hugging Face": [("hf_", LETTERS, 34)],
    "Hugging Face, organization": [("api_org_", LETTERS, 34)],
    "Kaggle": [("KGAT_", HEX, 32)],
    "Replicate": [("r8_", MIXED, 37)],
    "Roboflow": [("rf_", MIXED, 28)],
    "Weights & Biases": [("wandb_v1_", MIXED, 77)],
    "LangSmith": [("lsv2_pt_", HEX, 32), ("_", HEX, 10)],
    "Langfuse": [("sk-lf-", HEX, 36)],
    "Prefect": [("pnu_", MIXED, 36)],
    "OpenAI, Anthropic and others": [("sk-", MIXED, 48)],
    "OpenAI, project": [("sk-proj-", URL, 156)],
    "Anthropic": [("sk-ant-api03-", URL, 93), ("AA", "", 0)],
    "OpenRouter": [("sk-or-v1-", HEX, 64)],
    "Groq": [("gsk_", MIXED, 52)],
    "xAI": [("xai-", MIXED, 80)],
    "Perplexity": [("pplx-", MIXED, 48)],
    "NVIDIA": [("nvapi-", URL, 64)],
    "Tavily": [("tvly-", MIXED, 32)],
    "Together": [("tgp_v1_", URL, 43)],
    "Fireworks": [("fw_", MIXED, 24)],
    "Cerebras": [("csk-", SMALL, 48)],
    "Pinecone": [("pcsk_", MIXED, 70)],
    "Jina": [("jina_", HEX, 32), ("", MIXED, 28)],
    "ElevenLabs": [("sk_", HEX, 48)],
    "Firecrawl": [("fc-", HEX, 32)],
    "Voyage": [("pa-", MIXED, 43)],
    "RunPod": [("rpa_", MIXED, 40)],
    "Modal": [("ak-", MIXED, 22)],
    "GitHub": [("ghp_", MIXED, 36)],
    "GitHub, OAuth": [("gho_", MIXED, 36)],
    "GitHub, user": [("ghu_", MIXED, 36)],
    "GitHub, server": [("ghs_", MIXED, 36)],
    "GitHub, refresh": [("ghr_", MIXED, 76)],
    "GitHub, fine-grained": [("github_pat_", MIXED, 22), ("_", MIXED, 59)],
    "GitLab": [("glpat-", URL, 20)],
    "GitLab, routable": [("glpat-", URL, 27), (".", SMALL, 9)],
    "GitLab, job": [("glcbt-", HEX, 2), ("_", URL, 20)],
    "GitLab, runner": [("GR1348941", URL, 20)],
    "Atlassian": [("ATATT3", URL, 186)],
    "npm": [("npm_", MIXED, 36)],
    "PyPI": [("pypi-", "A", 1), ("gEIcHlwaS5vcmc", URL, 100)],
    "Docker Hub": [("dckr_pat_", URL, 27)],
    "RubyGems": [("rubygems_", HEX, 48)],
    "Artifactory": [("AKCp", MIXED, 69)],
    "Sourcegraph": [("sgp_", HEX, 40)],
    "Postman": [("PMAK-", HEX, 24), ("-", HEX, 34)],
    "AWS": [("AKIA", string.ascii_uppercase, 16)],
    "AWS, temporary": [("ASIA", CAPITALS, 16)],
    "Amazon Bedrock": [("ABSK", MIXED, 128)],
    "Google": [("AIza", URL, 35)],
    "Google, OAuth": [("ya29.", URL, 60)],
    "Google, client": [("GOCSPX-", URL, 28)],
    "Azure": [("a1B", "8", 1), ("Q~", MIXED, 34)],
    "Alibaba Cloud": [("LTAI", MIXED, 20)],
    "Tencent Cloud": [("AKID", MIXED, 32)],
    "Yandex Cloud": [("AQVN", URL, 36)],
    "DigitalOcean": [("dop_v1_", HEX, 64)],
    "DigitalOcean, OAuth": [("doo_v1_", HEX, 64)],
    "Databricks": [("dapi", HEX, 32), ("-2", "", 0)],
    "Heroku": [("HRKU-AA", URL, 58)],
    "Fly.io": [("fo1_", MIXED, 43)],
    "Supabase": [("sbp_", HEX, 40)],
    "PlanetScale": [("pscale_tkn_", MIXED, 43)],
    "HashiCorp": [("hvs.", URL, 95)],
    "HashiCorp, Terraform": [("", MIXED, 14), (".atlasv1.", MIXED, 67)],
    "Pulumi": [("pul-", HEX, 40)],
    "Doppler": [("dp.pt.", MIXED, 43)],
    "1Password": [("A3-", CAPITALS, 6), ("-", CAPITALS, 11), *[("-", CAPITALS, 5)] * 3],
    "age": [("AGE-SECRET-KEY-1", CAPITALS, 58)],
    "Slack": [("xoxb-", string.digits, 12), ("-", string.digits, 12), ("-", MIXED, 24)],
    "Slack, app": [("xapp-1-", CAPITALS, 11), ("-", string.digits, 13), ("-", HEX, 64)],
    "Slack, refresh": [("xoxe.xoxp-1-", CAPITALS, 163)],
    "Slack, webhook": [
        ("https://hooks.slack.com/services/T", CAPITALS, 8),
        ("/B", CAPITALS, 8),
        ("/", MIXED, 24),
    ],
    "Discord": [("M", MIXED, 25), (".", MIXED, 6), (".", MIXED, 38)],
    "Discord, webhook": [("https://discord.com/api/webhooks/", string.digits, 18), ("/", URL, 68)],
    "Telegram": [("", string.digits, 10), (":AA", URL, 33)],
    "Teams": [("https://acme.webhook.office.com/webhookb2/", HEX, 32), ("/IncomingWebhook/", HEX, 32)],
    "Twilio": [("SK", HEX, 32)],
    "SendGrid": [("SG.", MIXED, 22), (".", MIXED, 43)],
    "Mailgun": [("key-", HEX, 32)],
    "Mailchimp": [("", HEX, 32), ("-us12", "", 0)],
    "Brevo": [("xkeysib-", HEX, 64), ("-", MIXED, 16)],
    "Stripe": [("sk_live_", MIXED, 24)],
    "Stripe, restricted": [("rk_test_", MIXED, 99)],
    "Stripe, webhook": [("whsec_", MIXED, 32)],
    "Square": [("sq0atp-", URL, 22)],
    "Shopify": [("shpat_", HEX, 32)],
    "Meta": [("EAAM", MIXED, 120)],
    "Notion": [("ntn_", string.digits, 11), ("", MIXED, 35)],
    "Linear": [("lin_api_", MIXED, 40)],
    "Airtable": [("pat", MIXED, 14), (".", HEX, 64)],
    "Grafana": [("glsa_", MIXED, 32), ("_", HEX, 8)],
    "Sentry": [("sntryu_", HEX, 64)],
    "New Relic": [("NRAK-", CAPITALS, 27)],
    "Dynatrace": [("dt0c01.", CAPITALS, 24), (".", CAPITALS, 64)],
    "JSON Web Token": [("eyJ", MIXED, 30), (".eyJ", MIXED, 60), (".", URL, 43)],
    "Neptune": [("eyJhcGlfYWRkcmVzcyI6", MIXED, 80)],
}


def keys(seed: int = 0) -> dict[str, str]:
    """Return a made-up key for each issuer, and for each of its kinds: `GitHub, OAuth`."""
    chance = random.Random(seed)
    return {name: "".join(map(_part(chance), parts)) for name, parts in _PARTS.items()}


def core(key: str) -> str:
    """Return the part of a key that no text may hold: its last characters without punctuation."""
    return key.rstrip("-_")[-10:]


def _part(chance: random.Random):
    """Return a function that fills a part: letters and a digit at least, as those of real keys."""

    def filled(part: tuple[str, str, int]) -> str:
        beginning, alphabet, length = part
        body = "".join(chance.choices(alphabet, k=length)) if length else ""
        both = length > 8 and {*string.digits} < {*alphabet} and {*string.ascii_letters} & {*alphabet}
        return beginning + (
            body[:1] + "7" + body[2:-1] + body[-1].replace("-", "x").replace("_", "x") if both else body
        )

    return filled
