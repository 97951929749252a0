"""What distributed training gains and costs: fair timing, timelines, all-reduces.

- `interleaved`: compare speeds fairly, in rounds
- `scaling`: what several ranks gain, and where a step's time goes
- `all_reduces`, `alpha_beta`: the bytes and the seconds of an all-reduce, by a model
- `step_time`: how long a training step takes by that model
- `held_out`: the model's errors on what it was not fitted on
- `overlap`: how much of an all-reduce DDP hides
- `timeline`: read a Horovod Timeline, or PyTorch's profile
"""
