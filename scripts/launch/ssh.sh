#!/bin/bash
# Start train_torch_ddp.py on machines that ssh reaches, one torchrun on each:
#
#     HOSTS="node-1 node-2" RANKS_PER_HOST=4 bash ssh.sh --epochs 5
#
# Every machine needs the same Python environment and the same folder FOLDER with
# train_torch_ddp.py and data/; port 29500 of the first must be open to the others.
# RUN: with two "hosts" that were this machine, and REMOTE in the place of ssh; not over a network.
set -euo pipefail

HOSTS="${HOSTS:?name the machines: HOSTS=\"node-1 node-2\"}"
RANKS_PER_HOST="${RANKS_PER_HOST:-1}"
FOLDER="${FOLDER:-$PWD}"
PORT="${PORT:-29500}"
REMOTE="${REMOTE:-ssh -tt}" # -tt: what is ended here ends there too
read -ra hosts <<< "$HOSTS"

pids=()
trap '((${#pids[@]} == 0)) || kill "${pids[@]}" 2> /dev/null || true' EXIT
for number in "${!hosts[@]}"; do
    command=(torchrun --nnodes "${#hosts[@]}" --node_rank "$number" --nproc_per_node
        "$RANKS_PER_HOST" --master_addr "${hosts[0]}" --master_port "$PORT"
        train_torch_ddp.py "$@")
    $REMOTE "${hosts[$number]}" "cd $(printf %q "$FOLDER") && exec $(printf '%q ' "${command[@]}")" &
    pids+=($!)
done
for _ in "${pids[@]}"; do
    wait -n # whichever ends: the first that fails ends the script, and the trap the others
done
pids=()
