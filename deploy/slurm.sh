#!/usr/bin/env bash
# `spt sweep` on a Slurm cluster: Ray over the nodes of one job, runs in a folder that all nodes share.
#
#   sbatch --nodes 4 deploy/slurm.sh sweep.yaml
#
# A job that hits its time limit is submitted again: what is finished is skipped, and the rest goes on from its last step.
#SBATCH --job-name=spt-sweep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
set -euo pipefail

sweep=${1:?usage: sbatch deploy/slurm.sh SWEEP.yaml}
export SPT_HOME=${SPT_HOME:-$SLURM_SUBMIT_DIR/.spt} # must be on a file system that all nodes see
cd "$SLURM_SUBMIT_DIR"
[ -d .venv ] && . .venv/bin/activate
export PYTHONPATH=$PWD

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address | awk '{print $1}'):6379

srun --nodes=1 --ntasks=1 -w "$head" ray start --head --port=6379 --num-gpus="${SLURM_GPUS_PER_NODE:-1}" --block &
for _ in $(seq 60); do # until the head answers
    ray status --address "$address" >/dev/null 2>&1 && break
    sleep 2
done
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --exclude "$head" \
        ray start --address "$address" --num-gpus="${SLURM_GPUS_PER_NODE:-1}" --block &
fi
python -m spt sweep "$sweep" --engine ray --address "$address"
