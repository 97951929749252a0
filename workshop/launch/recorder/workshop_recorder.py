"""What a rank notes of itself, in a thread: where it is, its collectives, how it ended.

It uses the standard library, and torch only if the script has imported it. Every SECONDS it looks
where the main thread is. It writes HOST-PID.json and .fr (torch's flight recorder, a pickle) into
the record's folder: when the file `ask` there changes, now and then by itself (never more than a
third of a percent of the time), and at the end. All is atomic: a reader never finds half a file. It
holds a lock of HOST-PID.stack: so a reader knows that the process lives, in whatever namespace.
"""

import atexit
import collections
import contextlib
import faulthandler
import fcntl
import gc
import json
import math
import os
import signal
import socket
import sys
import threading
import time
import traceback
import weakref
import zlib

SECONDS = 0.1
QUIET_SECONDS, SHARE = 0.3, 300  # between two notes by itself; or so many times what a note costs
LOCK_SECONDS = 20  # a busy machine may need that long for the note that is being written
MAX_SAMPLES, MAX_PLACES, MAX_FRAMES, MAX_HASHED = 600, 200, 40, 64 << 20
MAX_MESSAGE, MAX_STEPS = 2000, 16
# To ask a rank for its stack when no thread of Python runs: nobody uses this signal.
STACK_SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None
VARIABLES = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "HOROVOD_TIMELINE"),
    "OMPI_MCA_btl_tcp_if_include",
)
# Part of a file's path -> what a rank does that has such a frame on its stack; the first that fits.
ACTIVITIES = {
    "/torch/utils/data/": "data",
    "/torch/distributed/": "communication",
    "/horovod/": "communication",
    "/torch/autograd/": "backward",
    "/torch/optim/": "optimizer",
}
UNNAMED = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")  # in a function
HASHED_WEIGHTS, HASHED_OF_EACH = 32, 64  # of an optimizer at a step, so that it costs nothing
HASH_EVERY = 64  # steps, besides 1, 2, 4, ...
HASHED_INPUT = 1 << 18  # numbers of each tensor that a model is called with: 0.5 ms
PACING = 47  # SO_MAX_PACING_RATE of Linux, which Python's socket does not name
LIBRARIES = ("horovod", "mpi4py", "tensorflow")  # by which ranks exchange, besides torch


def start(folder):
    """Record this process. Harmless where it is recorded already."""
    recorder = Recorder(folder)
    threading.Thread(target=recorder.run, name="workshop-recorder", daemon=True).start()
    recorder.watch_the_end()


def is_library(path):
    """Whether a file is the interpreter's, or an installed package's."""
    return "site-packages" in path or path.startswith(("<", os.path.dirname(os.__file__)))


class Recorder:
    """Of this process. folder: the record's."""

    def __init__(self, folder):
        self.pid, self.began = os.getpid(), time.time()
        self.request = os.path.join(folder, "ask")
        self.path = os.path.join(folder, f"{socket.gethostname()}-{self.pid}")
        self.memory_kills = memory_kills()
        self.main = threading.main_thread().ident
        self.places = {}  # (activity, file, line, function) -> its number
        self.samples = collections.deque(maxlen=MAX_SAMPLES)  # (Unix seconds, number of the place)
        self.stack, self.since = [], time.time()  # of the main thread; since when it has not moved
        self.known = weakref.WeakSet()  # models, optimizers and loaders that take part in steps
        self.objects = {}  # of the last look that found any, with its Unix time
        self.paced = False
        self.joined_as = None  # (rank, world_size), also when it has left the others
        self.steps = collections.Counter()  # optimizer's id -> its steps
        # optimizer's id -> {step: hash of some of its weights}, {step: its rates}
        self.hashes, self.rates = {}, {}
        self.inputs = {}  # {step 1, 2, 4, 8, ...: hash of what a model was called with after it}
        self.input_hook = None
        self.loaded = False  # whether a DataLoader dealt out something; it may be gone by now
        self.idle = True  # whether no optimizer could have changed a weight
        self.stepped_at = collections.deque(maxlen=MAX_STEPS)
        self.hooked = self.ddp = False  # whether a model of DDP's was there at the second step
        self.end = {}
        self.lock = threading.Lock()
        self.stack_file = open(f"{self.path}.stack", "w")  # noqa: SIM115
        fcntl.lockf(self.stack_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if STACK_SIGNAL:
            faulthandler.register(STACK_SIGNAL, file=self.stack_file, all_threads=True)
            # As a launcher ends ranks when another has failed. The signal then does what it did.
            faulthandler.register(signal.SIGTERM, self.stack_file, all_threads=True, chain=True)
            if not faulthandler.is_enabled():  # gloo aborts a rank whose peer sends too much
                faulthandler.enable(self.stack_file)

    def run(self):
        """Sample, answer, and note, for as long as the process lives."""
        seen, due = 0.0, time.monotonic() + SECONDS
        while True:
            time.sleep(SECONDS)
            self.hook_torch()
            self.sample()
            try:
                changed = os.stat(self.request).st_mtime_ns
            except OSError:
                changed = 0
            if changed > seen or time.monotonic() > due:
                cost = self.write(deep=changed > seen)
                seen, due = changed, time.monotonic() + max(QUIET_SECONDS, SHARE * cost)

    def hook_torch(self):
        """Be called before each optimizer's step, know loaders, once torch has been imported."""
        module, data = map(sys.modules.get, ("torch.optim.optimizer", "torch.utils.data"))
        imported = hasattr(module, "register_optimizer_step_pre_hook") and hasattr(
            data, "DataLoader"
        )
        if self.hooked or not imported:
            return
        self.hooked = True
        module.register_optimizer_step_pre_hook(self.stepped)
        iterate = data.DataLoader.__iter__

        def iterate_known(loader):
            self.loaded = True
            self.known.add(loader)
            return iterate(loader)

        data.DataLoader.__iter__ = iterate_known

    def stepped(self, optimizer, *_):
        """Hash some weights after steps 0, 1, 2, 4, ... 64, 128, 192, ...: at the end the optimizer
        may be gone. Just before the next one: a script may average the weights after a step.
        """
        step = self.steps[id(optimizer)]
        self.steps[id(optimizer)] += 1
        self.stepped_at.append(time.time())
        doubled = step & (step - 1) == 0
        if (doubled or step % HASH_EVERY == 0) and joined():
            with contextlib.suppress(Exception):  # what looks at a script must not end it
                self.idle = self.idle and is_idle(optimizer)
                self.note_weights(optimizer, step)
                self.known.add(optimizer)
                if doubled and step:
                    self.watch_input(step)
                if doubled and step > 1:
                    self.look(everywhere=step == 2)
                    self.ddp = self.ddp or (step == 2 and has_ddp(self.objects))

    def note_weights(self, optimizer, step):
        """Keep the hash of its weights, and its rates; of steps in between only the newest."""
        if (value := hash_of_some(optimizer)) is not None:
            rates = [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]
            for history, new in ((self.hashes, value), (self.rates, rates)):
                of_optimizer = history.setdefault(id(optimizer), {})
                of_optimizer[step] = new
                between = [number for number in of_optimizer if number & (number - 1)]
                for number in between[:-MAX_STEPS]:
                    del of_optimizer[number]

    def watch_input(self, step):
        """Hash what the next model that trains is called with, and look away again."""

        def note_input(model, inputs):
            if model.training:
                self.input_hook.remove()
                with contextlib.suppress(Exception):  # what looks at a script must not end it
                    self.inputs[step] = hash_of_input(inputs)
                    self.known.add(model)

        if self.input_hook:
            self.input_hook.remove()
        module = sys.modules["torch.nn.modules.module"]
        self.input_hook = module.register_module_forward_pre_hook(note_input)

    def look(self, everywhere):
        """Note what the script's objects say: a function's own are gone at the end.

        everywhere: search the memory for them, 0.04 s; else those that are known.
        """
        if everywhere:
            self.paced = self.paced or sockets_are_paced()
            self.known.update(instances(kinds()))
        if looked := objects(list(self.known), ended=self.end.get("how") == "exit"):
            self.objects = looked | {"time": time.time()}

    def frames(self):
        """The main thread's stack, innermost first: (file, line, function). The script's all."""
        frame, frames = frame_of(self.main), []
        while frame is not None:
            code = frame.f_code
            path = code.co_filename
            if path != __file__ and (len(frames) < MAX_FRAMES or not is_library(path)):
                line = frame.f_lineno or code.co_firstlineno  # None between two lines
                frames.append((path, line, code.co_name))
            frame = frame.f_back
        return frames

    def other_threads(self):
        """Of the script's other threads: (name, file, line, function)."""
        places = []
        for thread in threading.enumerate():
            frame = frame_of(thread.ident) if thread.ident != self.main else None
            while frame is not None and is_library(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None and frame.f_code.co_filename != __file__:
                code = frame.f_code
                line = frame.f_lineno or code.co_firstlineno
                places.append((thread.name, code.co_filename, line, code.co_name))
        return places

    def position(self):
        """(rank, world_size), as when it last was with the others, if it ever was."""
        if joined():
            self.joined_as = position()
        return self.joined_as or position()

    def sample(self):
        """Note where the main thread is, and count it once it has joined the other ranks."""
        frames = self.frames()
        if frames != self.stack:
            self.stack, self.since = frames, time.time()
        dist = sys.modules.get("torch.distributed")
        if hasattr(dist, "is_initialized") and not dist.is_initialized():
            return
        self.position()
        paths = " ".join(path for path, _, _ in frames)
        activity = next((name for part, name in ACTIVITIES.items() if part in paths), "compute")
        named = (place for place in frames if not (is_library(place[0]) or place[2] in UNNAMED))
        place = next(named, ("", 0, ""))
        if len(self.places) < MAX_PLACES or (activity, *place) in self.places:
            number = self.places.setdefault((activity, *place), len(self.places))
            self.samples.append((round(time.time(), 2), number))

    def write(self, deep=False):
        """Write both files; return the processor's seconds that it took.

        deep: with a look at the script's objects.
        """
        began = time.thread_time()
        in_child = os.getpid() != self.pid  # a forked one, whose lock nobody may release
        if not in_child and self.lock.acquire(timeout=LOCK_SECONDS):
            try:
                self.put("json", json.dumps(self.note(deep)).encode())
                self.put("fr", flight_recorder())
            except Exception:  # the folder is gone, the disk full: the script must not notice
                pass
            finally:
                self.lock.release()
        return time.thread_time() - began

    def put(self, suffix, content):
        """Write a file of this process, whole or not at all."""
        if content:
            path = f"{self.path}.{suffix}"
            with open(path + ".partial", "wb") as file:
                file.write(content)
            os.replace(path + ".partial", path)

    def note(self, deep):
        """What is known of this process, for JSON."""
        rank, world_size = self.position()
        torch = sys.modules.get("torch")
        note = {
            "pid": self.pid,
            "host": socket.gethostname(),
            "rank": rank,
            "world_size": world_size,
            "joined": self.joined_as is not None,
            "libraries": [name for name in LIBRARIES if name in sys.modules],
            "ddp": self.ddp,
            "optimizer_steps": max(self.steps.values(), default=0),
            "hashes": list(self.hashes.values()),
            "rates": list(self.rates.values()),
            "loaded": self.loaded,
            "inputs": {step: value for step, value in self.inputs.items() if value is not None},
            "idle": self.idle,
            "stepped_at": list(self.stepped_at),
            **tensorflow_task(deep),
            "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
            "began": self.began,
            "time": time.time(),
            "stack": self.frames(),
            "other_threads": self.other_threads(),
            "since": self.since,
            "places": list(self.places),
            "samples": list(self.samples),
            "memory_kills_before": self.memory_kills,
            "memory_kills": memory_kills(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
            "threads": getattr(torch, "get_num_threads", int)(),
            "end": self.end,
        }
        # Before it joins the others, the script may still import torch; at its end it has left.
        if deep and hasattr(torch, "nn") and (joined() or self.end):
            with contextlib.suppress(Exception):  # it may change what is looked at
                self.look(everywhere=True)
        return {**note, "objects": self.objects, "paced": self.paced}

    def watch_the_end(self):
        """Note how the process ends: an exception, the interpreter's end, os._exit."""
        show, leave = sys.excepthook, os._exit

        def excepthook(kind, error, trace):
            frames = traceback.extract_tb(trace)
            script = [frame for frame in frames if not is_library(frame.filename)] or frames[-1:]
            place = (script[-1].filename, script[-1].lineno, script[-1].name) if script else ()
            message = f"{kind.__name__}: {error}"
            if len(message) > MAX_MESSAGE:  # TensorFlow's reason is at its end
                half = MAX_MESSAGE // 2
                message = f"{message[:half]}\n...\n{message[-half:]}"
            stack = [(frame.filename, frame.lineno, frame.name) for frame in frames[::-1]]
            self.end = {"how": "exception", "message": message, "place": place, "stack": stack}
            self.write()
            show(kind, error, trace)

        def finish(status=None):
            if os.getpid() == self.pid and not self.end:
                self.end = {"how": "exit", "status": status}
                self.write(deep=not status)

        def leave_with_note(status):
            finish(status)
            leave(status)

        sys.excepthook, os._exit = excepthook, leave_with_note
        atexit.register(finish)


def frame_of(thread):
    """A thread's innermost frame.

    Without the garbage collector: if Python 3.11 collects in sys._current_frames(), which holds a
    lock of the interpreter, it may wait for ever for a thread that wants it (cpython#106883).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)
    finally:
        if collects:
            gc.enable()


def flight_recorder():
    """torch's own record of collectives, pickled; empty where it has none."""
    module = sys.modules.get("torch._C._distributed_c10d")
    if not hasattr(module, "_dump_fr_trace"):
        return b""
    with compiler_not_imported(sys.modules["torch"]):
        return module._dump_fr_trace()


@contextlib.contextmanager
def compiler_not_imported(torch):
    """Hide torch._inductor from this thread, unless the script has imported it.

    To name the lines that called a collective, torch looks whether it has this attribute, which
    imports it: a second of the processor, and an ImportError in a script that just imports it.
    """
    find, here = torch.__getattr__, threading.get_ident()

    def find_others(name):
        if name == "_inductor" and threading.get_ident() == here:
            raise AttributeError(name)
        return find(name)

    torch.__getattr__ = find_others
    try:
        yield
    finally:
        torch.__getattr__ = find


def joined():
    """Whether this process has joined other ranks with torch; its children have not."""
    dist = sys.modules.get("torch.distributed")
    return hasattr(dist, "is_initialized") and dist.is_initialized()


def position():
    """(rank, world_size), as torch or the launcher says; None where neither does."""
    if joined():
        dist = sys.modules["torch.distributed"]
        return dist.get_rank(), dist.get_world_size()
    for prefix in ("", "OMPI_COMM_WORLD_"):
        if f"{prefix}RANK" in os.environ:
            size = os.environ.get("WORLD_SIZE" if not prefix else f"{prefix}SIZE", "1")
            return int(os.environ[f"{prefix}RANK"]), int(size)
    return None, None


def tensorflow_task(deep):
    """Of a task of TF_CONFIG's cluster: which, and, deep, the servers at whose port nobody listens.

    To connect and leave again harms no server.
    """
    try:
        config = json.loads(os.environ["TF_CONFIG"])
        task = "{type} {index}".format(**config["task"])
        servers = config["cluster"].get("ps", [])
    except (KeyError, TypeError, ValueError):
        return {}
    unreached = {}
    for index, address in enumerate(servers) if deep else ():
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=0.3).close()
        except (OSError, ValueError):
            unreached[f"ps {index}"] = address
    return {"task": task, "unreached": unreached}


def memory_kills():
    """How many processes of this one's cgroup the kernel has killed for want of memory."""
    with contextlib.suppress(OSError, KeyError, ValueError):
        with open("/proc/self/cgroup") as file:
            groups = dict(line.strip().split(":", 2)[1:] for line in file)
        version_1 = "memory" in groups
        folder = f"memory{groups['memory']}" if version_1 else groups[""]
        name = "memory.oom_control" if version_1 else "memory.events"
        with open(f"/sys/fs/cgroup/{folder}/{name}") as file:
            return int(dict(line.split() for line in file)["oom_kill"])
    return 0


def kinds():
    """The classes of what is looked at: models, optimizers, loaders."""
    torch = sys.modules["torch"]
    model = torch.nn.parallel.DistributedDataParallel
    return model, torch.optim.Optimizer, torch.utils.data.DataLoader


def objects(living, ended):
    """What models, optimizers and loaders say. ended: hash the weights, too."""
    models, optimizers, loaders = ([o for o in living if type_is(o, kind)] for kind in kinds())
    if not (models or optimizers or loaders):  # at the end a function's own are gone
        return {}
    data = sys.modules["torch"].utils.data
    return {
        "models": [describe_model(model) for model in models],
        "optimizers": [describe_optimizer(optimizer, ended) for optimizer in optimizers],
        "loaders": [describe_loader(loader, data) for loader in loaders],
    }


def instances(kinds):
    """All living instances of these classes, and of classes made of them.

    gc.get_objects() would hold, for a moment, tuples that the main thread is still filling; CPython
    then fails there. get_referrers returns only what refers to these classes.
    """
    todo, classes = list(kinds), []
    while todo:
        classes.append(todo.pop())
        todo += type.__subclasses__(classes[-1])
    return [item for item in gc.get_referrers(*classes) if type_is(item, kinds)]


def type_is(item, kind):
    """isinstance by the real type: a proxy's answer might run code of the script."""
    return issubclass(type(item), kind)


def describe_model(model):
    """DDP's exchange (s per step), its buckets, its layers whose statistics ranks don't share."""
    norms = [type(m).__name__ for m in model.modules() if type(m).__name__.startswith("BatchNorm")]
    logged = model._get_ddp_logging_data()
    return {
        "communication": logged.get("avg_backward_comm_time", 0) / 1e9,
        "overlap": logged.get("avg_backward_compute_comm_overlap_time", 0) / 1e9,
        "buckets": logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes", ""),
        "batch_norms": len(norms),
    }


def describe_optimizer(optimizer, ended):
    """Its weights: how many, whether all are numbers, and a hash once training is over."""
    weights = [p for group in optimizer.param_groups for p in group["params"]]
    plain = is_plain(optimizer, weights)
    note = {"shapes": [list(p.shape) for p in weights][:200], "plain": plain, "hash": None}
    note["special"] = is_special(optimizer)
    small = sum(p.numel() * p.element_size() for p in weights) <= MAX_HASHED
    if ended and plain and small and all(p.device.type == "cpu" for p in weights):
        values = [p.detach().contiguous().float().numpy() for p in weights]
        note["finite"] = all(math.isfinite(float(value.sum())) for value in values)
        note["hash"] = zlib.crc32(b"".join(value.tobytes() for value in values))
    return note


def describe_loader(loader, data):
    """Its batches, and how it deals examples out to ranks."""
    sampler, by = loader.sampler, loader.batch_sampler
    custom = None if by is None or type(by) is data.BatchSampler else by
    batches = len(loader) if hasattr(loader.dataset, "__len__") else None
    return {
        "batch_size": loader.batch_size,
        "batches": batches,
        "workers": loader.num_workers,
        "sampler": type(sampler).__name__,
        "epoch": getattr(sampler, "epoch", None),
        "shuffle": getattr(sampler, "shuffle", None),
        "seed": getattr(sampler, "seed", None),
        "distributed": type_is(sampler, data.DistributedSampler),
        "subset": subset_hash(loader.dataset, data),
        "batch_sampler": None if custom is None else type(custom).__name__,
        "data": zlib.crc32((fingerprint(loader.dataset) + fingerprint(custom)).encode()),
    }


def subset_hash(dataset, data):
    """Of the numbers of a subset's examples, as random_split deals them; None of other data."""
    if not type_is(dataset, data.Subset):
        return None
    return zlib.crc32(fingerprint(dataset.indices).encode())


def fingerprint(value, depth=3):
    """A text that is the same for equal data sets: their types, sizes, a few of their values.

    No method of the script is called.
    """
    kind = type(value).__name__
    if kind in ("int", "float", "str", "bool", "bytes", "NoneType"):
        return f"{kind} {value!r}"[:200]
    if kind in ("Tensor", "ndarray"):
        flat = value.reshape(-1)
        return f"{kind} {tuple(value.shape)} {flat[:: max(len(flat) // 16, 1)].tolist()[:17]}"
    if kind in ("list", "tuple", "range"):
        some = [*value[:3], *value[len(value) // 2 :][:3], *value[-3:]]
        return f"{kind} {len(value)} {[fingerprint(item, depth - 1) for item in some if depth]}"
    parts = vars(value) if depth and hasattr(value, "__dict__") else {}
    return f"{kind} {[(name, fingerprint(item, depth - 1)) for name, item in parts.items()]}"


def has_ddp(looked):
    """Whether a model of DistributedDataParallel lives, and no optimizer that divides its weights.

    Such a one makes optimizers of its own, each for its rank's share.
    """
    special = any(note["special"] for note in looked.get("optimizers", []))
    return bool(looked.get("models")) and not special


def sockets_are_paced():
    """Whether a connection of this process may carry only so many bytes a second."""
    for name in os.listdir("/proc/self/fd") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as connection:
                    if connection.getsockopt(socket.SOL_SOCKET, PACING) != -1:
                        return True
    return False


def hash_of_some(optimizer):
    """Of a few numbers of each of its first weights; None where ranks divide them, or on a GPU."""
    weights = [p for group in optimizer.param_groups for p in group["params"]][:HASHED_WEIGHTS]
    if not is_plain(optimizer, weights) or any(p.device.type != "cpu" for p in weights):
        return None
    parts = [p.detach().reshape(-1)[:HASHED_OF_EACH].float().numpy().tobytes() for p in weights]
    return zlib.crc32(b"".join(parts))


def hash_of_input(inputs):
    """Of the tensors that a model is called with; None if there is none, or on a GPU."""
    torch, value = sys.modules["torch"], 0
    tensors = [item.detach() for item in inputs if type_is(item, torch.Tensor)]
    if not tensors or any(tensor.device.type != "cpu" for tensor in tensors):
        return None
    for tensor in tensors:
        some = tensor.reshape(-1)[:HASHED_INPUT].contiguous()
        value = zlib.crc32(some.view(torch.uint8).numpy(), value)
    return value


def is_idle(optimizer):
    """Whether an optimizer changes nothing: no gradient comes to its weights, or its rate is 0."""
    groups = optimizer.param_groups
    still = all(p.grad is None for group in groups for p in group["params"])
    return still or not any(group.get("lr", 1) for group in groups)


def is_plain(optimizer, weights):
    """Whether each rank has all weights, and an optimizer that averages nothing by itself."""
    return all(type(p).__name__ == "Parameter" for p in weights) and not is_special(optimizer)


def is_special(item):
    """Whether it is an optimizer whose weights may differ among the ranks."""
    return any(name in type(item).__name__ for name in ("ZeroRedundancy", "LocalSGD"))
