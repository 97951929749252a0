#!/bin/bash
# Fetches the kit and makes its environment, both on the disk that outlives a stop.
# Usage: set_up.sh KIT FOLDER     KIT: s3://...tar.gz, or an address for git clone
# Running it again goes on where it was interrupted.
set -euo pipefail
source_of_kit=$1 folder=$2
kit=$folder/workshop-kit environment=$folder/workshop-env
conda=${CONDA:-/home/ec2-user/anaconda3/bin/conda}

fetch() {
  rm -rf "$kit.part"
  mkdir -p "$kit.part"
  case $source_of_kit in
    s3://*) aws s3 cp --only-show-errors "$source_of_kit" - | tar -xz -C "$kit.part" ;;
    *) git clone --depth 1 "$source_of_kit" "$kit.part" ;;
  esac
  mv "$kit.part" "$kit"
}

make_environment() {
  rm -rf "$environment"
  "$conda" env create --quiet --prefix "$environment" --file "$kit/environment.yml"
  "$environment/bin/pip" install --quiet --no-deps --editable "$kit"
  touch "$environment/.whole"
}

[ -d "$kit" ] || fetch
[ -e "$environment/.whole" ] || make_environment
"$environment/bin/python" -m ipykernel install --user --name workshop --display-name Workshop
echo "The kit is in $kit. In JupyterLab choose the kernel Workshop."
