"""Compare tensors, and name the mistake."""

import pytest
import torch


def expect(condition: bool, text: str) -> None:
    """Fail the test with this text and no traceback, unless the condition holds."""
    if not condition:
        pytest.fail(text, pytrace=False)


def check(
    actual: torch.Tensor | None,
    expected: torch.Tensor,
    where: str,
    mistakes: dict[str, torch.Tensor] | None = None,
) -> None:
    """Raise AssertionError with the first wrong value, and the mistake that explains all of them.

    mistakes: a sentence -> what the wrong values would be then.
    """
    if actual is None:
        raise AssertionError(f"{where} is None; a tensor was expected.")
    actual = actual.detach()
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise AssertionError(
            f"{where} is {tuple(actual.shape)}, {actual.dtype}; "
            f"expected {tuple(expected.shape)}, {expected.dtype}."
        )
    wrong = ~_close(actual, expected)
    if not wrong.any():
        return
    at = tuple(wrong.nonzero()[0].tolist())
    kind = "g" if actual.is_floating_point() else "d"
    text = f"{where}{list(at)} is {actual[at].item():{kind}}; expected {expected[at].item():{kind}}"
    text += f" ({int(wrong.sum())} of {wrong.numel()} values are wrong)."
    for sentence, tensor in (mistakes or {}).items():
        if _close(actual, tensor)[wrong].all():
            text += f" {sentence}"
            break
    raise AssertionError(text)


def _close(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    if not (first.is_floating_point() or second.is_floating_point()):
        return first == second
    if first.dtype == second.dtype == torch.float64:
        return torch.isclose(first, second, rtol=1e-12, atol=1e-12)
    return torch.isclose(first.double(), second.double(), rtol=1e-4, atol=2e-6)
