"""As scikit_learn_iris.py of amazon-sagemaker-examples, and its model_fn."""

import argparse
import os

import joblib
import numpy as np
from sklearn import tree

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_leaf_nodes", type=int, default=-1)
    parser.add_argument("--output-data-dir", type=str, default=os.environ["SM_OUTPUT_DATA_DIR"])
    parser.add_argument("--model-dir", type=str, default=os.environ["SM_MODEL_DIR"])
    parser.add_argument("--train", type=str, default=os.environ["SM_CHANNEL_TRAIN"])
    args = parser.parse_args()
    files = [os.path.join(args.train, name) for name in os.listdir(args.train)]
    rows = np.concatenate([np.loadtxt(path, delimiter=",") for path in files])
    model = tree.DecisionTreeClassifier(max_leaf_nodes=args.max_leaf_nodes)
    model.fit(rows[:, 1:], rows[:, 0])
    joblib.dump(model, os.path.join(args.model_dir, "model.joblib"))
    print("LEAVES", model.get_n_leaves(), flush=True)


def model_fn(model_dir):
    return joblib.load(os.path.join(model_dir, "model.joblib"))
