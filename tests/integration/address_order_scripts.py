"""Scripts whose output follows the order of addresses, in one way or another.

Each prints what it does in that order. `RACING` are those in which several threads of the script allocate.
"""

# ruff: noqa: E501 - lines of the scripts
from __future__ import annotations

_THINGS = "class Thing: pass\nthings = [Thing() for _ in range(60)]\nnumber = {id(t): i for i, t in enumerate(things)}\n"
_MODEL = """\
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(8)])
number = {id(p): i for i, p in enumerate(model.parameters())}
def train(optimizer, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).pow(2).sum().backward()
        optimizer.step()
    print(model[0].weight.sum().item(), model[7].bias.sum().item())
"""

PLAIN = {
    "set of objects": _THINGS + "print([number[id(t)] for t in set(things)])",
    "frozenset of objects": _THINGS + "print([number[id(t)] for t in frozenset(things)])",
    "sorted by id": _THINGS + "print([number[id(t)] for t in sorted(things, key=id)])",
    "least id": _THINGS + "print(number[id(min(things, key=id))], number[id(max(things, key=id))])",
    "default repr": _THINGS + "print(things[:3], object(), Thing, print, lambda: 0)",
    "sorted by repr": _THINGS + "print([number[id(t)] for t in sorted(things, key=repr)])",
    "hash": _THINGS + "print([hash(t) % 7 for t in things], hash(None), hash(print), hash(int) % 11)",
    "id as a seed": _THINGS + "import random\nprint(random.Random(id(things[0])).random())",
    "WeakSet": _THINGS + "import weakref\nprint([number[id(t)] for t in weakref.WeakSet(things)])",
    "WeakKeyDictionary": _THINGS
    + "import weakref\nkept = weakref.WeakKeyDictionary((t, 0) for t in things)\n"
    "print([number[id(r())] for r in set(kept.keyrefs())])",
    "dict keyed by id": _THINGS + "print([number[i] for i in sorted({id(t): t for t in things})])",
    "set holding None": "print(list({None, 1, 2.5, 'text', (), Ellipsis, NotImplemented, True}))",
    "set of functions": "fs = [lambda i=i: i for i in range(40)]\nprint([f() for f in set(fs)])",
    "set of builtins": "print([f.__name__ for f in {len, print, sorted, max, min, sum, any, all, hash, id, iter}])",
    "set of classes": (
        "cs = [type(f'C{i}', (), {}) for i in range(40)]\nprint([c.__name__ for c in {*cs, int, str, dict, list}])"
    ),
    "set of modules": (
        "import json, csv, math, collections, decimal, fractions, sys\n"
        "print([m.__name__ for m in {json, csv, math, collections, decimal, fractions, sys}])"
    ),
    "set of methods": _THINGS + "print([number[id(m.__self__)] for m in {t.__init__ for t in things}])",
    "set of generators": (
        "gs = [(i for i in range(3)) for _ in range(30)]\nn = {g: i for i, g in enumerate(gs)}\n"
        "print([n[g] for g in set(gs)])"
    ),
    "set of exceptions": ("es = [ValueError(i) for i in range(30)]\nprint([e.args[0] for e in set(es)])"),
    "set operations": _THINGS + "print([number[id(t)] for t in set(things[:40]) & set(things[20:])], "
    "[number[id(t)] for t in set(things) - set(things[5:])], number[id(set(things).pop())])",
    "NumPy array of objects": _THINGS
    + "import numpy as np\nprint([number[id(t)] for t in sorted(np.array(things), key=id)])",
    "addresses of arrays": (
        "import numpy as np\narrays = [np.zeros(n) for n in (3, 1000, 40_000, 3_000_000, 8_000_000)]\n"
        "print([a.ctypes.data % 4096 for a in arrays], np.argsort([a.ctypes.data for a in arrays]))"
    ),
    "ctypes": (
        "import ctypes\nbuffers = [ctypes.create_string_buffer(n) for n in (10, 1000, 200_000, 5_000_000)]\n"
        "print([ctypes.addressof(b) for b in buffers])"
    ),
    "mapped files": (
        "import mmap, ctypes\nmaps = [mmap.mmap(-1, 1 << 20) for _ in range(5)]\n"
        "print([ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in maps])"
    ),
    "an imported module of its own": (
        "import pathlib, sys\n"
        "pathlib.Path('own_module.py').write_text('class Own:\\n    pass\\nowned = [Own() for _ in range(50)]\\n')\n"
        "sys.path.insert(0, '')\nimport own_module\n"
        "n = {id(o): i for i, o in enumerate(own_module.owned)}\nprint([n[id(o)] for o in set(own_module.owned)])"
    ),
    "a long run": _THINGS + "import time\nend = time.monotonic() + 0.5\n"
    "while time.monotonic() < end: time.sleep(0.05)\n"
    "later = [Thing() for _ in range(60)]\nn = {id(t): i for i, t in enumerate(later)}\n"
    "print([n[id(t)] for t in set(later)])",
    "garbage with cycles": (
        "import gc\nclass Node: pass\ndef cycle():\n    a, b = Node(), Node()\n    a.b, b.a = b, a\n    return a\n"
        "for _ in range(20_000): cycle()\nnodes = [cycle() for _ in range(40)]\n"
        "n = {id(x): i for i, x in enumerate(nodes)}\nprint([n[id(x)] for x in set(nodes)])"
    ),
    "forked children": (
        "import os\n" + _THINGS + "child = os.fork()\nif child: os.waitpid(child, 0)\n"
        "more = [Thing() for _ in range(30)]\nn = {id(t): i for i, t in enumerate(more)}\n"
        "print([n[id(t)] for t in set(more)], flush=True)\nif not child: os._exit(0)"
    ),
    "spawned children": """\
import multiprocessing
class Thing: pass
def order(_):
    things = [Thing() for _ in range(40)]
    number = {id(t): i for i, t in enumerate(things)}
    return [number[id(t)] for t in set(things)]
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(order, [0]))
""",
}
TORCH = {
    "optimizer of a set": _MODEL + "optimizer = torch.optim.Adam(set(model.parameters()), 0.1)\n"
    "print([number[id(p)] for g in optimizer.param_groups for p in g['params']])\ntrain(optimizer)",
    "clipping over a set": _MODEL
    + "optimizer = torch.optim.SGD(model.parameters(), 0.1)\nfor _ in range(20):\n"
    "    optimizer.zero_grad()\n    model(torch.randn(4, 8)).pow(2).sum().backward()\n"
    "    total = sum(p.grad.norm() for p in set(model.parameters()))\n"
    "    torch.nn.utils.clip_grad_norm_(frozenset(model.parameters()), 1.0)\n    optimizer.step()\n"
    "    print(total.item())",
    "set of tensors": (
        "import torch\nts = [torch.randn(5) for _ in range(60)]\nn = {id(t): i for i, t in enumerate(ts)}\n"
        "print([n[id(t)] for t in set(ts)], sum(set(ts)).sum().item())"
    ),
    "sorted by data_ptr": (
        "import torch\nts = [torch.randn(n) for n in (3, 500, 70_000, 5, 2_000_000, 9, 900_000) * 3]\n"
        "print(sorted(range(21), key=lambda i: ts[i].data_ptr()), [t.data_ptr() for t in ts])"
    ),
    "set of modules of a model": _MODEL
    + "n = {m: i for i, m in enumerate(model.modules())}\nprint([n[m] for m in set(model.modules())])\n"
    "for m in set(model): torch.nn.init.normal_(m.weight)\ntrain(torch.optim.SGD(model.parameters(), 0.01))",
    "initialised in the order of a set": _MODEL
    + "for p in sorted(model.parameters(), key=id): torch.nn.init.uniform_(p)\n"
    "train(torch.optim.SGD(model.parameters(), 1e-6))",
    "order late in a training": _MODEL
    + "optimizer = torch.optim.SGD(model.parameters(), 0.001)\ntrain(optimizer, 300)\n"
    "extra = [torch.randn(3) for _ in range(40)]\nn = {id(t): i for i, t in enumerate(extra)}\n"
    "print([n[id(t)] for t in set(extra)])",
    "hooks in a WeakSet": _MODEL
    + "import weakref\nkept = weakref.WeakSet(model.modules())\nn = {m: i for i, m in enumerate(model.modules())}\n"
    "print([n[m] for m in kept])\nprint([n[m] for m in weakref.WeakKeyDictionary({m: 1 for m in set(n)})])",
    "a loader": _MODEL + "data = torch.utils.data.TensorDataset(torch.randn(32, 8))\n"
    "optimizer = torch.optim.SGD(set(model.parameters()), 0.001)\n"
    "for (batch,) in torch.utils.data.DataLoader(data, 4, shuffle=True):\n"
    "    optimizer.zero_grad(); model(batch).sum().backward(); optimizer.step()\n"
    "    fresh = {torch.zeros(1) for _ in range(20)}\n    print([number[id(p)] for p in set(model.parameters())])",
}
RACING = {
    "a loader with workers": _MODEL + "data = torch.utils.data.TensorDataset(torch.randn(64, 8))\n"
    "optimizer = torch.optim.SGD(set(model.parameters()), 0.001)\n"
    "for (batch,) in torch.utils.data.DataLoader(data, 4, shuffle=True, num_workers=2):\n"
    "    optimizer.zero_grad(); model(batch).sum().backward(); optimizer.step()\n"
    "    fresh = [torch.zeros(1) for _ in range(20)]\n    n = {id(t): i for i, t in enumerate(fresh)}\n"
    "    print([number[id(p)] for p in set(model.parameters())], [n[id(t)] for t in set(fresh)])",
    "threads": """\
import threading
class Thing: pass
made = {}
def make(k):
    made[k] = []
    for _ in range(20_000):
        made[k].append(Thing())
threads = [threading.Thread(target=make, args=(k,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
things = [t for k in range(4) for t in made[k]]
number = {id(t): i for i, t in enumerate(things)}
print([number[id(t)] for t in set(things)][:50])
""",
    "a pool of threads": """\
from concurrent.futures import ThreadPoolExecutor
import time
def make(k):
    time.sleep(0.001 * (k % 3))
    return [object() for _ in range(500)]
with ThreadPoolExecutor(4) as pool:
    things = [t for part in pool.map(make, range(40)) for t in part]
number = {id(t): i for i, t in enumerate(things)}
print([number[id(t)] for t in set(things)][:50])
""",
}
