"""Compare tensors, and name the mistake."""

import torch


def check(
    actual: torch.Tensor | None,
    expected: torch.Tensor,
    where: str,
    mistakes: dict[str, torch.Tensor] | None = None,
) -> None:
    """Raise AssertionError with the first wrong value, and the mistake that would explain it all.

    mistakes: a sentence -> what `actual` would be then.
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
    text = f"{where}{list(at)} is {actual[at].item():g}; expected {expected[at].item():g}"
    text += f" ({int(wrong.sum())} of {wrong.numel()} values are wrong)."
    for sentence, tensor in (mistakes or {}).items():
        if _close(actual, tensor).all():
            text += f" {sentence}"
            break
    raise AssertionError(text)


def _close(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return torch.isclose(first.double(), second.double(), rtol=1e-4, atol=2e-6)
