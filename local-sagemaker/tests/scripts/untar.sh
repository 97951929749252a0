#!/bin/sh
# A shell entry point that unpacks an archive of somebody else's, as SDK v3's ModelTrainer does.
set -e
cd "$TMPDIR"
tar xzf "$SM_CHANNEL_TRAINING/foreign.tar.gz"
echo "UNPACKED $(cat foreign.txt)"
echo weights > "$SM_MODEL_DIR/weights"
