"""What the name of a secret governs: its whole value, in source code, settings, data and patches."""

from __future__ import annotations

import re
import time

import pytest

from samebits._text.masking import Masker, masked, masked_code, masked_patch

VALUE = "hunterAAA1"

SETTINGS = (
    "password: correct horse X",
    "password: correct horse X # of the test server",
    "password = correct horse X",
    "DB_PASSWORD=correct horse X",
    "- password: correct horse X",
    "# password: correct horse X",
    "db.password: 'it''s X'",
    "password: first\n  second X\nlr: 1",
    'password: "first\n  second X"\nlr: 1',
    "smtp_password: |\n  first\n\n  X\nlr: 1",
    "smtp_password: >-\n  X\nlr: 1",
    "db:\n  password: |2\n     X\n  host: h",
    "list:\n  - password: |\n      X\n    host: h",
    "api_keys:\n  - X\n  - other-X\nlr: 1",
    "api_keys:\n- X\nlr: 1",
    "api_keys:\n  # X\n  - none",
    "api_keys: [X, Y]",
    "api_keys: [\n  Y,\n  X\n]",
    "secrets:\n  first: X\n  second: Y",
    "credentials: {user: bob, key: X}",
    "password: !!str X",
    "password: &a X",
    "password: !vault |\n  X",
    "- name: DB_PASSWORD\n  value: X",
    "- name: DB_PASSWORD\n  value: correct horse X",
    "- value: X\n  name: DB_PASSWORD",
    '- name: "DB_PASSWORD"\n  value: "X"',
    '{"name": "DB_PASSWORD", "value": "X"}',
    '{"value": "X", "name": "DB_PASSWORD"}',
    '[\n  {\n    "name": "DB_PASSWORD",\n    "type": "s",\n    "value": "X"\n  }\n]',
    '{"ParameterKey": "DbPassword", "ParameterValue": "X"}',
    '{"api_keys": ["a", "X"], "lr": 1}',
    '{"cookies": {"session": "X"}, "lr": 1}',
    "<password>X</password>",
    "<password>\n  X\n</password>",
    "<password><![CDATA[X]]></password>",
    '<db.password kind="a">X</db.password>',
    "<passwords><item>X</item></passwords>",
    '<add key="DbPassword" value="X"/>',
    "<property><name>db.password</name><value>X</value></property>",
    "set-cookie: a=b; session=X",
    "secret_keys = ['a', 'X']",
)  # fmt: skip


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_and_data(text):
    _check(text, masked)


SOURCE = (
    'API_KEY = "X" if x else "Y"',
    'API_KEY = "hunterBBB2" if mode == "prod" else "X"',
    'API_KEY = {\n    "prod": "X",\n}[mode]',
    'passwords = ("hunterBBB2", "X")',
    'passwords = "hunterBBB2", "X"',
    'passwords = (\n    "hunterBBB2",\n    "X",\n)',
    'api_keys = ["X"]',
    'api_keys = {"X", "Y"}',
    'api_keys: list[str] = ["X"]',
    'self.api_keys = ["a1", *more, "X"]',
    'cookies = {"session": "X"}',
    'cookies={"session": "X"}, lr=0.1)',
    'cookie = dict(session="X")',
    'client(cookies=dict(session="X"), lr=1)',
    'DB_PW = "X"',
    'db_creds = "X"',
    'secrets = ["X"]',
    'password = "".join(["hunter", "X"])',
    'password = base64.b64decode("X")',
    'password = os.getenv("DB_PASSWORD", "X")',
    'password = os.environ.get("DB_PASSWORD") or "X"',
    'password = read(value="X")',
    'credentials = {"user": "bob", "password": "X"}',
    'EnvVar(name="DB_PASSWORD", value="X")',
    '{"name": "DB_PASSWORD", "value": "X"}',
    'text = "don\'t"; cookie = dict(session="X")',
    f'x = "{"a" * 400}"; cookie = dict(session="X")',
    f'it = f("{f"isn{chr(39)}t " * 61}"); cookie=dict(session="X")',
    '    "api_keys = [\\"X\\"]\\n",',
    '    "api_keys = [\\n",\n    "    \\"X\\",\\n",\n    "]\\n",',
    '    "api_keys = [\'X\']\\n",',
    '    "cookie=dict(session=\\"X\\")\\n",',
)  # fmt: skip


@pytest.mark.parametrize("text", SOURCE)
@pytest.mark.parametrize("mask", [masked_code, masked], ids=["code", "text"])
def test_source(text, mask):
    _check(text, mask)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('API_KEY = "X" if mode == "prod" else "X"', 'API_KEY = "***" if mode == "prod" else "***"'),
        ('cookies = {"session": "X"}', 'cookies = {"session": "***"}'),
        ('f(password="X", mode="train2024")', 'f(password="***", mode="train2024")'),
        ('x = ["don\'t"]; cookie = dict(session="X")', 'x = ["don\'t"]; cookie = dict(session="***")'),
        ('passwords = (\n+    "X",\n+    "X",\n+)\n+a = "b1"',
         'passwords = (\n+    "***",\n+    "***",\n+)\n+a = "b1"'),
        ('{"password": "X", "mode": "train2024"}', '{"password": "***", "mode": "train2024"}'),
        ('connect("dbname=x password=X user=y")', 'connect("dbname=x password=*** user=y")'),
        ('credentials = {"user": "bob"}', 'credentials = {"user": "bob"}'),
    ],
)  # fmt: skip
def test_code_stays_code(text, expected):
    assert masked_code(_filled(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password: correct X\nlr: 1", "password: ***\nlr: 1"),
        ("a:\n  password: |\n    X\n  lr: 1", "a:\n  password: |\n    ***\n  lr: 1"),
        ("api_keys:\n  - X\nlr: 1", "api_keys:\n  - ***\nlr: 1"),
        ("- name: DB_PASSWORD\n  value: X\n- name: A\n  value: b c",
         "- name: DB_PASSWORD\n  value: ***\n- name: A\n  value: b c"),
        ("DB_PASSWORD=X python train.py --lr 0.1", "DB_PASSWORD=*** python train.py --lr 0.1"),
        ('{"name": "DB_PASSWORD", "value": "X"}, {"name": "A", "value": "b"}',
         '{"name": "DB_PASSWORD", "value": "***"}, {"name": "A", "value": "b"}'),
        ('{"password": "X", "mode": "train"}', '{"password": "***", "mode": "train"}'),
        ("<password>X</password><host>h</host>", "<password>***</password><host>h</host>"),
    ],
)  # fmt: skip
def test_no_more_than_the_value_is_masked(text, expected):
    assert masked(_filled(text)) == expected


@pytest.mark.parametrize("sign", "+- ")
@pytest.mark.parametrize("text", SETTINGS)
def test_settings_in_a_patch(text, sign):
    _check_patch("c.yaml", text, sign)


@pytest.mark.parametrize("sign", "+- ")
@pytest.mark.parametrize("text", SOURCE)
def test_source_in_a_patch(text, sign):
    _check_patch("c.ipynb" if text.startswith("    ") else "c.py", text, sign)


CUT = (
    " smtp_password: |\n-  X\n+  other X\n lr: 1",
    "-password: first X\n+password: |\n+  X",
    "+smtp_password: |\n+  X",
    " api_keys:\n+  - X",
    " api_keys:\n+- X",
    "@@ -9,2 +10,3 @@ api_keys:\n   - one-key\n+  - X",
    "@@ -9,2 +10,3 @@ smtp_password: |\n   begin\n+  X\n lr: 1",
    " - name: DB_PASSWORD\n-  value: X\n+  value: other X",
    '+  "api_keys": [\n+    "X",',
    " <password>\n+  X\n </password>",
)  # fmt: skip


@pytest.mark.parametrize("text", CUT)
def test_a_block_that_the_hunk_cuts(text):
    diff = f"diff --git a/c.yaml b/c.yaml\n@@ -1,2 +1,3 @@\n{text}\n"
    _same_signs(_filled(diff), masked_patch(_filled(diff)))


CUT_CODE = (
    '@@ -9,2 +10,3 @@ API_KEYS = [\n     "one-key-1",\n+    "X",\n ]',
    '-api_keys = [\n+api_keys = [  # new\n+    "X",\n ]',
    ' passwords = (\n-    "X",\n+    "other-X",',
)  # fmt: skip


@pytest.mark.parametrize("text", CUT_CODE)
def test_an_expression_that_the_hunk_cuts(text):
    rest = '@@ -20,2 +21,3 @@\n x = "train2024"\n+y = "train2025"\n'
    diff = f"diff --git a/c.py b/c.py\n@@ -1,2 +1,3 @@\n{text}\n{rest}"
    found = masked_patch(_filled(diff))
    _same_signs(_filled(diff), found)
    assert found.endswith(rest)


INNOCENT = """
tokenizer: bert-base-uncased
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
max_tokens: 512
max_new_tokens = 256
key_dim: 64
num_key_value_heads: 8
pad_token: "[PAD]"
eos_token: </s>
bos_token: "<s>"
unk_token = "<unk>"
mask_token: [MASK]
additional_special_tokens: ["<image>", "<video>"]
keys = ["x", "y"]
keys: [image, label]
key: train
key = "layer1"
sort_key: length
input_keys:
target_keys = ("label", "weight")
password_field = "password"
password_file: /run/password
password_field: password
num_keys: 3
secret: false
secret = None
use_auth_token: true
token: null
tokens = ["a", "b"]
tokens: [the, cat, sat]
tokens_per_batch: 4096
token_embedding: learned
token_dropout: 0.1
names: [cat, dog]
names = {"first": "x", "second": "y"}
passes: 3
pass: 2
n_pass: 2
warmup_passes: 10
compass: north
author: Ada
authors: [Ada, Grace]
auth: none
author_email: ada@example.org
signature: v2
sigma: 0.5
signal: [1, 2, 3]
hotkeys: {save: s, load: l}
monkey: banana
keypoints: [nose, eye]
keyframe_interval: 30
query_key_value: fused
key_padding_mask = None
tokenizer_name_or_path: meta-llama/Llama-2-7b-hf
token_type_ids = torch.zeros(2, 3)
api_key: ${oc.env:WANDB_API_KEY}
api_key: ${WANDB_API_KEY}
HF_TOKEN: ${{ secrets.HF_TOKEN }}
password: "{{ password }}"
secret_name: wandb
credentials_path: /run/credentials
has_password: yes
secret_key_ref: db
{"name": "lr", "value": "0.1"}
{"name": "tokenizer", "value": "fast"}
{"tokenizer": {"type": "BPE", "pad_token": "<pad>"}}
<token>the</token>
<tokenizer>fast</tokenizer>
- name: BATCH_SIZE
"""


@pytest.mark.parametrize("line", INNOCENT.strip().splitlines())
def test_lines_of_training_settings_stay(line):
    assert masked(line) == line
    assert masked_code(line) == line
    for name in ("c.yaml", "c.py"):
        diff = f"diff --git a/{name} b/{name}\n@@ -1,2 +1,2 @@\n lr: 1\n+{line}\n other: 2\n"
        assert masked_patch(diff) == diff


INNOCENT_CODE = (
    'password = os.environ["DB_PASSWORD"]',
    'password = config["db"]["password"]',
    'password = getpass.getpass("Password of the server: ")',
    'password = os.getenv("DB_PASSWORD")',
    'api_key = kwargs.pop("api_key", None)',
    'credentials = json.load(open("credentials.json", "r", encoding="utf-8"))',
    'credentials = boto3.client("s3", region_name="us-east-1")',
    'secret = hashlib.sha256(name.encode("utf-8")).hexdigest()',
    'secret = modal.Secret.from_name("wandb-secret")',
    'parser.add_argument("--api-key", help="The key of the tracker (see 2.1)", default=None)',
    'token = re.sub(r"[0-9]+", "x", token)',
    'token = words[0] if kind == "word" else "other"',
    'auth = {"kind": "basic"}',
    'assert password, "no password1 given"',
    'if password == other and mode == "train2024":',
    'print("password=", "train2024x")',
    'def login(password=None, mode="train2024"):',
    'x = {"password": password, "mode": "train2024"}',
    'password = field(default=None, metadata={"help": "The password of x1"})',
    '    """Log in.\n\n    Args:\n        password: one of the strings ("a1", "b1").\n    """',
)  # fmt: skip


@pytest.mark.parametrize("text", INNOCENT_CODE)
def test_code_that_reads_a_secret_stays(text):
    assert masked_code(text) == text


def test_what_describes_a_secret_stays():
    text = "client_secret:\n  description: |\n    Give it twice.\n  value: hunterAAA1\n"
    assert masked(text) == text.replace(VALUE, "***")


def test_lists_in_tables():
    found = Masker().value({"api_keys": ["hunterAAA1", "b"], "names": ["a"], "keys": ["x"]})
    assert found == {"api_keys": ["***", "***"], "names": ["a"], "keys": ["x"]}


@pytest.mark.parametrize(
    "unit",
    [
        "password = ", "token = token(", 'password = "', "password: |\n  ", "api_keys:\n- ", "<password>",
        "name: password ", '"name": "password", ', "password=[", 'password = {"a": ', "password: 'x\n  ",
        "password = x if ", "'password", "value: password ", 'cookie = "a" "b" ', '\\"password = \\"',
    ],
)  # fmt: skip
def test_the_time_is_linear(unit):
    """Twice the text takes at most about twice as long."""
    for mask in (masked, masked_code):
        times = []
        for size in (100_000, 400_000):
            text = unit * (size // len(unit))
            started = time.process_time()
            mask(text)
            times.append(time.process_time() - started)
        assert times[1] < 10 * times[0] + 0.5


def _filled(text):
    return re.sub(r"\bY\b", "hunterBBB2", re.sub(r"\bX\b", VALUE, text))


def _check(text, mask):
    text = _filled(text)
    found = mask(text)
    assert "AAA1" not in found
    assert "BBB2" not in found
    assert found.count("\n") == text.count("\n")


def _check_patch(name, text, sign):
    lines = [f"{sign}{line}" for line in _filled(text).split("\n")]
    diff = "\n".join([f"diff --git a/{name} b/{name}", "@@ -1,9 +1,9 @@", " steps: 1", *lines, " end: 2", ""])
    found = masked_patch(diff)
    _same_signs(diff, found)
    assert found.endswith("\n end: 2\n")


def _same_signs(diff, found):
    assert "AAA1" not in found
    assert "BBB2" not in found
    assert [line[:1] for line in found.split("\n")] == [line[:1] for line in diff.split("\n")]
