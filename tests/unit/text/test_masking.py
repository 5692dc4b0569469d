"""Secrets are masked before they are kept, and what is no secret is kept."""

from __future__ import annotations

import pytest

from samebits._text import masking
from samebits._text.masking import NOT_RECORDED, Masker, masked
from samebits._text.secret_names import MASK


def _listed(text: str) -> list[str]:
    return [words.strip() for line in text.strip().splitlines() for words in line.split(" | ")]


# Made up, of the shapes that the issuers document.
SHAPED = (
    "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_" + "11ABCDEFG0aBcDeFgHiJkLmN_oPqRsTuVwXyZ",
    "glpat-" + "aBcDeFgHiJkLmNoPqRsT",
    "sk-" + "proj-aBcDeFgHiJkLmNoPqRsTuVwX",
    "sk-ant-" + "api03-aBcDeFgHiJkLmNoPqRsTuVwX",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "xoxb-" + "123456789012-abcdefghijkl",
    "npm_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789",
    "pypi-" + "AgEIcHlwaS5vcmcCJGFiY2RlZg",
    "r8_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ",
    "gsk_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ",
    "nvapi-" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ",
    "sk_live_" + "aBcDeFgHiJkLmNoP",
    "SG." + "aBcDeFgHiJkLmNoPqR.aBcDeFgHiJkLmNoPqRsT",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
)


@pytest.mark.parametrize("secret", SHAPED)
@pytest.mark.parametrize(
    "text", ["{}", "bad key {}", "f({!r})", "x={}", "http://h/?q={}&y=1", "a/{}/b", "['{}']"]
)
def test_known_shapes_are_masked_wherever_they_stand(secret, text):
    found = masked(text.format(secret))
    assert secret not in found
    assert MASK in found
    assert secret[-8:] not in found


NAMED = _listed("""
--token X | --token=X | -token X | --hf-token X | --hf_token=X | --hfToken X | --api-key X
--api_key=X | --apikey X | --password X | --db-passwd X | --passphrase X | --secret X
--client-secret=X | --wandb-key X | --aws-secret-access-key X | --auth-token X | --github.token X
--bearer X | --jwt X | --credentials X | HF_TOKEN=X | WANDB_API_KEY=X | +logger.api_key=X
~db.password=X | model.auth.token=X | API_KEY=X | --auth X | --url https://me:X@example.com/a
https://X@github.com/me/repo | postgres://me:X@db/x | redis://:X@host:6379
--header Authorization:X | --user me:X | https://h/path?access_token=X&page=2 | https://h/?sig=X
--cookie X
""")


@pytest.mark.parametrize("words", NAMED)
@pytest.mark.parametrize("secret", ["hunter2!", "S3cr-t_Value", "correcthorse"])
def test_secrets_among_arguments(words, secret):
    """Also where the exception repeats them without their name."""
    command = ("train.py", *words.replace("X", secret).split(), "--lr", "0.1")
    masker = Masker(command)
    assert secret not in " ".join(masker.command)
    assert masker.command[-2:] == ("--lr", "0.1")
    assert len(masker.command) == len(command)
    if not secret.startswith("S3") and "://" not in words and ":X" not in words:
        assert masker.message(f"ValueError: no such user ({secret})") == f"ValueError: no such user ({MASK})"


ORDINARY = _listed("""
--max-tokens 100 | --tokenizer bert-base-uncased | --token-dim 64 | --pad-token pad
--eos_token </s> | --mask-token [MASK] | --n-tokens 5 | --token 3 | --use-auth-token train.csv
--use_auth_token True | --key layer1 | --num-key-value-heads 8 | --passes 3 | --n-pass 2
--secret-file /run/x | --author me | --image-token 151655 | --monkey banana
--tokens-per-batch 4096 | --authors a | --keys a b | --sigma 0.5 | ssh://git@github.com/me/repo
s3://bucket/key | https://example.com/a?page=2 | --max_new_tokens 5 | --tied-key | --signal-length 5
--compass north | --passenger x | PWD=/home/me | --class-token mean
""")


@pytest.mark.parametrize("words", ORDINARY)
def test_what_is_no_secret_is_kept(words):
    """What is masked is not compared, so that nothing may be masked lightly."""
    command = ("train.py", *words.split())
    assert Masker(command).command == command


MESSAGES = (
    "HTTPError: 401 Client Error for url: https://api.example.com/v1?api_key=X&x=1",
    "RuntimeError: login failed (password: X)",
    "ValueError: {'Authorization': 'Bearer X'}",
    'ValueError: {"api_key": "X", "model": "m"}',
    "SystemExit: unrecognized arguments: --token X",
    "ConnectionError: https://me:X@example.com refused",
    "OSError: cannot open mysql+pymysql://me:X@h/db",
    "ValueError: HF_TOKEN='X' is not valid",
    "KeyError: ('token', 'password=X')",
    "ValueError: -----BEGIN OPENSSH PRIVATE KEY-----X",
    "ValueError: AccountName=a;AccountKey=X;EndpointSuffix=c",
    "ValueError: x-api-key: X",
)


@pytest.mark.parametrize("text", MESSAGES)
def test_secrets_in_messages(text):
    found = masked(text.replace("X", "S3cret-Value"))
    assert "S3cret" not in found
    assert found.startswith(text.partition(":")[0])


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'token'",
        "RuntimeError: size mismatch for token_embedding.weight: copying a param with shape [2]",
        "SyntaxError: unexpected token: )",
        "ValueError: pad_token=<pad>, max_tokens=512, key=layer1",
        "aten::linear(key_proj, dim=1)",
        "git@github.com:me/repo.git",
    ],
)
def test_ordinary_messages_are_kept(text):
    assert masked(text) == text


@pytest.mark.parametrize("secret", SHAPED)
def test_no_secret_passes_for_numbers(secret):
    """Texts of numbers are not searched."""
    assert not masking._NUMBERS.fullmatch(secret)


@pytest.mark.parametrize("text", ["('->', -1.5e-07)", "[1, 2], -0.25", ""])
def test_numbers_are_not_searched(text, monkeypatch):
    """Each result that a script reads is another one, and a search takes longer than an op."""
    monkeypatch.setattr(masking, "_is_suspect", None)
    assert Masker().text(text) == text


def test_secrets_of_the_environment_are_masked_in_texts():
    masker = Masker(
        ("t.py",), {"MY_API_TOKEN": "quite-a-secret", "PWD": "/home/me/project", "USE_TOKEN": "yes"}
    )
    assert masker.message("no such key: 'quite-a-secret'") == f"no such key: '{MASK}'"
    assert masker.text("/home/me/project/train.py") == "/home/me/project/train.py"


def test_short_secrets_do_not_destroy_names():
    """A password `main` is masked in messages, and functions of that name keep theirs."""
    masker = Masker(("t.py", "--password", "main"))
    assert masker.text("main") == "main"
    assert masker.message("ValueError: main is wrong, mainly") == f"ValueError: {MASK} is wrong, mainly"


def test_values_are_masked_at_any_depth():
    found = Masker().value(
        {"variables": {"MY_TOKEN": "abc", "N": "3"}, "list": ["https://a:b@c"], "n": 1, "none": None}
    )
    assert found == {
        "variables": {"MY_TOKEN": MASK, "N": "3"},
        "list": [f"https://a:{MASK}@c"],
        "n": 1,
        "none": None,
    }


def test_no_entry_of_a_table_is_lost_when_its_name_is_masked():
    """Two data files whose names differ in the secret only are two files."""
    names = [f"ghp_abcdefghijklmnopqrst123{number}.csv" for number in range(3)]
    found = Masker().value({name: number for number, name in enumerate(names)})
    assert found == {"***.csv": 0, "***.csv (2)": 1, "***.csv (3)": 2}


def test_names_in_a_table_are_masked():
    """A data file is a name in a table of facts."""
    found = Masker().value({"data": {"a/ghp_abcdefghijklmnopqrst1234.csv": {"size": 1}}, "hash_seed": "0"})
    assert found == {"data": {"a/***.csv": {"size": 1}}, "hash_seed": "0"}


@pytest.mark.parametrize("script", [("train.py",), ("-m", "package.train")])
def test_no_arguments(script):
    """None of them is kept, also not in what an exception says."""
    masker = Masker((*script, "--name", "Ada Lovelace"), no_arguments=True)
    assert masker.command == (*script, NOT_RECORDED)
    assert masker.message("ValueError: no Ada Lovelace here") == f"ValueError: no {MASK} here"
    assert Masker(script, no_arguments=True).command == script


def test_masking_twice_changes_nothing():
    """A record is written again when a killed run is closed."""
    for words in NAMED:
        once = Masker(("t.py", *words.replace("X", "hunter2!").split())).command
        assert Masker(once).command == once


KEY = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "call", ["wandb.login(", "login(\n+    ", "comet.set_api_key(", "api.authenticate( "]
)
def test_a_random_looking_first_argument_of_a_login_is_masked(call: str) -> None:
    assert masked(f'+{call}"{KEY}")') == f'+{call}"***")'


@pytest.mark.parametrize("text", [f'checkout("{KEY}")', f'login("{"model-" * 5}")', f'sha = "{KEY}"'])
def test_digests_and_plain_words_are_not(text: str) -> None:
    assert masked(text) == text
