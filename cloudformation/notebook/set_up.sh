#!/bin/bash
# Fetches the kit and makes its environment, both on the disk that outlives a stop.
# Usage: set_up.sh KIT FOLDER     KIT: s3://...tar.gz, or an address for git clone
# Running it again goes on where it was interrupted; while it runs, a second one does nothing.
set -euo pipefail
source_of_kit=$1 folder=$2
kit=$folder/workshop-kit environment=$folder/workshop-env
conda=${CONDA:-/home/ec2-user/anaconda3/bin/conda}

# idle_stop.py looks at this lock: what holds it is use.
exec 9>"$folder/.set_up.lock"
flock -n 9 || exit 0

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
  "$environment/bin/pip" install --quiet --no-deps --editable "$kit/local-sagemaker" --editable "$kit"
  touch "$environment/.whole"
}

# Lessons 04 to 06 want it; without it they go on with a stand-in, and say so.
build_horovod() {
  "$conda" install --yes --quiet --prefix "$environment" --override-channels --channel conda-forge \
    gxx make &&
    cd "$kit" && PATH="$environment/bin:$PATH" "$environment/bin/python" -m tools.setup \
    --horovod-here && touch "$environment/.horovod"
}

[ -d "$kit" ] || fetch
[ -e "$environment/.whole" ] || make_environment
"$environment/bin/python" -m ipykernel install --user --name workshop --display-name Workshop
[ -e "$environment/.horovod" ] || (build_horovod) || {
  echo "Horovod could not be built here; the reasons are above. Lessons 04 to 06 say what they do" \
    "without it. To try again: $0 $source_of_kit $folder"
}
echo "The kit is in $kit. In JupyterLab choose the kernel Workshop."
