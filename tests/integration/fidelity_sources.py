"""The longer sources of the fidelity table."""

SHOW = """\
import os, sys
def show():
    g = globals()
    print(list(g))
    print({k: repr(g[k]) for k in g if k.startswith("__")})
    print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys._xoptions, sys.warnoptions)
    print(type(__builtins__), type(sys.modules["__main__"]), sys.modules["__main__"].__dict__ is g)
    print(sys.exc_info(), sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), os.getcwd())
show()
"""

AT_EXIT = """
import atexit, sys
@atexit.register
def last():
    print("file" , "__file__" in globals(), "__cached__" in globals())
    print([type(getattr(sys, name, None)).__name__ for name in ("last_type", "last_value", "last_exc")])
    print(sys.excepthook is sys.__excepthook__, sys.exc_info(), __name__)
    trace = getattr(sys, "last_traceback", None)
    while trace:
        print(trace.tb_frame.f_code.co_name, trace.tb_lineno)
        trace = trace.tb_next
"""

PICKLE = """
import atexit, pickle, threading, time
class Point:
    def __init__(self, x):
        self.x = x
def round_trip(where):
    copy = pickle.loads(pickle.dumps(Point(3)))
    print(where, type(copy) is Point, copy.x, flush=True)
def late():
    time.sleep(0.1)
    round_trip("thread")
round_trip("main")
atexit.register(round_trip, "atexit")
threading.Thread(target=late).start()
"""

POOL = """
import multiprocessing, sys
class Point:
    def __init__(self, x):
        self.x = x
def twice(point):
    import os
    main = sys.modules["__main__"]
    names = sorted(name for name in os.environ if name.startswith("SAMEBITS"))
    seen = ("samebits" in sys.modules) if sys.argv[1] != "fork" else None
    return Point(2 * point.x), __name__, main.__name__, sys.argv, sys.path, seen, names
print("body", __name__)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        for point, *rest in pool.map(twice, [Point(1), Point(2)]):
            print(point.x, type(point) is Point, rest)
        pool.close()
        pool.join()
"""

ORDER = """
import atexit, sys, threading, time, weakref
class Loud:
    def __init__(self, name):
        self.name = name
    def __del__(self, write=sys.stdout.write):
        write(f"del {self.name}\\n")
loud = Loud("global")
def late():
    time.sleep(0.05)
    print("thread", threading.main_thread().is_alive())
threading.Thread(target=late, name="late").start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
atexit.register(print, "registered first")
atexit.register(print, "registered second")
atexit.register(lambda: print(sorted(t.name for t in threading.enumerate() if not t.daemon)))
weakref.finalize(loud, print, "finalize")
print("end of main")
"""

INTERRUPT = """
import atexit, os, signal, sys, threading, time
atexit.register(print, "atexit")
def late():
    time.sleep(0.05)
    print("thread")
threading.Thread(target=late).start()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
finally:
    print("finally", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""

RAISE = "def f():\n    raise ValueError('bad\\nluck')\n\n\nprint('before')\nf()\n"
WRAPPED = """
import os
import torch

class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("in a backward pass")

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        torch.ones(2) @ torch.ones(3)

def step():
    weight = torch.ones(2, requires_grad=True)
    Fails.apply(weight).sum().backward()

try:
    step()
except ValueError as error:
    try:
        list(torch.utils.data.DataLoader(Data()))
    except RuntimeError as second:
        second.__cause__ = error
        os.environ["name"] = "null byte \\0"
"""

ENVIRONMENT = """
import os, signal, stat, sys
print(sorted((k, v) for k, v in os.environ.items() if k != "_"))
print(sorted(os.listdir("/proc/self/fd"))[:3], os.getpgid(0) == os.getpgid(os.getppid()), os.umask(0o22))
print({s: str(signal.getsignal(s)) for s in sorted(signal.valid_signals())})
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), sys.stdout.line_buffering, sys.stdout.write_through)
print([stream.encoding + stream.errors for stream in (sys.stdin, sys.stdout, sys.stderr)], sys.executable)
import subprocess
print(subprocess.run([sys.executable, "-c", "import os; print(len(os.environ))"], capture_output=True).stdout)
"""

MODULES = {
    "package/__init__.py": "print('package', __name__, __import__('sys').argv)\n",
    "package/sibling.py": "VALUE = 3\n",
    "package/tool.py": "from .sibling import VALUE\nprint(VALUE)\n" + SHOW,
    "package/pool.py": POOL,
    "package/fails.py": AT_EXIT + RAISE,
    "package/leaves.py": AT_EXIT + "sys.exit('so long')\n",
    "package/broken.py": "x = = 1\n",
    "package/interrupted.py": INTERRUPT,
    "package/__main__.py": "import sys\nprint(__name__, __spec__.name, sys.argv, sys.path[0], __file__)\n",
    "raising/__init__.py": "1 / 0\n",
    "raising/tool.py": "",
}
