"""What distributed training gains and costs: fair timing, scaling, timelines, all-reduces.

- `interleaved`: compare speeds fairly, one after the other again and again
- `scaling`: speed-up, the parts of a step, where a second instance stops being worth it
- `all_reduces`, `alpha_beta`: the bytes and the seconds of an all-reduce, by a model
- `collectives`: the same measured on real ranks
- `timeline`: read a Horovod Timeline
"""
