"""FailureReason from what an instance left behind."""

import pytest

from local_sagemaker.core.records import internal, shorten
from local_sagemaker.training.failure_reason import failure_reason as reason


def left(opt_ml, text: str | bytes) -> None:
    (opt_ml / "output").mkdir()
    raw = text.encode() if isinstance(text, str) else text
    (opt_ml / "output" / "failure").write_bytes(raw)


TOOLKITS = 'ExecuteUserScriptError:\nExitCode 1\nErrorMessage "ValueError: no"'


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (f"{TOOLKITS}\n", 1, f"AlgorithmError: {TOOLKITS}, exit code: 1"),
        (None, 3, "AlgorithmError: Please see job logs for more information, exit code: 3"),
        (" \n", 1, "AlgorithmError: Please see job logs for more information, exit code: 1"),
        (None, 137, "killed (SIGKILL): it may have run out of memory, exit code: 137"),
        (b"\xff\xfe broken", 1, " broken, exit code: 1"),
    ],
)
def test_the_words_that_were_left_and_the_code(tmp_path, words, code, message):
    if words:
        left(tmp_path, words)
    assert reason(tmp_path, code).endswith(message)


def test_a_failure_file_of_gigabytes(tmp_path):
    """It is sparse: only whoever reads all of it pays for it."""
    left(tmp_path, "the beginning")
    with open(tmp_path / "output" / "failure", "r+b") as stream:
        stream.seek(3 << 30)
        stream.write(b"the end")
    message = reason(tmp_path, 1)
    assert "the beginning" in message and "the end" in message and len(message) <= 1024


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("No matching distribution found for torchvision==0.28.0+cpu", "--extra-index-url"),
        ("The user requested (constraint) torchvision==0.28.0+cpu", "--extra-index-url"),
        ("AttributeError: module 'horovod.torch' has no attribute 'init'", "horovod.tensorflow"),
        ("No module named 'smdistributed.dataparallel.torch.distributed'", "torch_smddp"),
        ("NameResolutionError: Failed to resolve 'huggingface.co'", "HTTPS_PROXY"),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "HTTPS_PROXY"),
        ("UnimplementedError: File system scheme 's3' not implemented", "SM_MODEL_DIR"),
        ("ConnectionError: HTTPConnectionPool(host='169.254.170.2')", "AWS_ACCESS_KEY_ID"),
        ("OSError: Tunnel connection failed: 502 No connection", "answered 502"),
        ("RuntimeError: operator torchvision::nms does not exist", "built for another torch"),
        ("ModuleNotFoundError: No module named 'xgboost'", "lacks xgboost"),
        ("ImportError: Extension horovod.torch has not been built", "horovod.tensorflow"),
        ('ExitCode 2\nErrorMessage ""\nCommand "python train.py"', "local-sagemaker logs"),
    ],
)
def test_what_to_do_is_said_first(tmp_path, message, hint):
    left(tmp_path, f"ExecuteUserScriptError:\n{message}")
    first, rest = reason(tmp_path, 1).split("\n", 1)
    assert first.startswith("AlgorithmError: [local] ") and hint in first
    assert rest == f"ExecuteUserScriptError:\n{message}, exit code: 1"


def test_a_long_traceback_keeps_its_beginning_and_its_last_line(tmp_path):
    left(tmp_path, "ExecuteUserScriptError:\n" + "frame\n" * 1000 + "ValueError: at last")
    message = reason(tmp_path, 1)
    assert len(message) <= 1024
    assert message.startswith("AlgorithmError: ExecuteUserScriptError:\n")
    assert message.endswith("ValueError: at last, exit code: 1")


@pytest.mark.parametrize("length", [100, 101, 5000])
def test_shorten(length):
    text = "a" * (length - 3) + "end"
    short = shorten(text, 100)
    assert len(short) <= 100
    assert short.endswith("end")
    assert (short == text) == (length <= 100)


def test_what_fails_outside_the_script_is_told_apart(caplog):
    assert internal("job", OSError("disk full")) == "InternalServerError: disk full"
    assert "Traceback" not in caplog.text
    try:
        {}["no such thing"]
    except KeyError as error:
        assert internal("job", error) == "InternalServerError: KeyError: 'no such thing'"
    assert "Traceback" in caplog.text and "test_failure_reason.py" in caplog.text
