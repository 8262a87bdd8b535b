"""
A rare class: area under the ROC curve
======================================

One transaction in a hundred is a fraud, and only the order of the scores counts: an
inspector looks at the most suspicious ones. ``loss="roc_area_log"`` minimizes the
logistic loss of all pairs of a fraud and an honest transaction, without ever listing
the pairs, and is compared with a balanced logistic regression.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import BMRMClassifier

X, y = make_classification(
    20_000,
    20,
    n_informative=6,
    weights=[0.99],
    class_sep=1.0,
    random_state=4,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

models = {
    "balanced LogisticRegression": LogisticRegression(class_weight="balanced"),
    'loss="roc_area_log"': BMRMClassifier(loss="roc_area_log"),
    'loss="roc_area"': BMRMClassifier(loss="roc_area"),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for name, model in models.items():
    model = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
    for ax in (left, right):
        RocCurveDisplay.from_estimator(model, X_test, y_test, ax=ax, name=name)
left.set_title("ROC curves of new transactions")
right.set(title="Those that an inspector sees", xlim=(0.0, 0.1), ylim=(0.0, 1.0))
right.set_aspect("auto")
right.get_legend().remove()
plt.show()

# %%
# As on real data sets (see the guide's page on rare classes) the curves are close: a
# balanced log loss ranks nearly as well. A loss of pairs needs no choice of class
# weights, and its ``objective_`` bounds one minus the area of the training data.
