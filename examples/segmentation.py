"""Segment sequences of frames into actions by a semi-Markov model.

A segmentation is a list of (length, label), with features of the frames of segments,
of their lengths and of adjacent labels; dynamic programming over the ends of segments
finds the best one (Teo et al. 2010, section 5.3.3, on generated data). Beside it is a
model of single frames, which cannot know how long actions take.
"""

import numpy as np

from sklearn_subqn import MulticlassHingeClassifier, StructuredSVM

N_LABELS, N_FEATURES, LONGEST = 3, 6, 16
LENGTHS = np.array([5, 8, 12])
MEANS = np.random.default_rng(7).normal(size=(N_LABELS, N_FEATURES))


def make_videos(n_videos, n_segments=8, noise=2.0, seed=0):
    """Return videos, arrays of shape (n_frames, n_features), and segmentations."""
    rng = np.random.default_rng(seed)
    videos, segmentations = [], []
    for _ in range(n_videos):
        # Actions follow each other in a cycle, mostly.
        steps = rng.choice([1, 2], size=n_segments, p=[0.8, 0.2])
        labels = steps.cumsum() % N_LABELS
        lengths = LENGTHS[labels] + rng.integers(-2, 3, size=n_segments)
        frames = MEANS[np.repeat(labels, lengths)]
        videos.append(frames + noise * rng.normal(size=frames.shape))
        segmentations.append(list(zip(lengths.tolist(), labels.tolist(), strict=True)))
    return videos, segmentations


def frame_labels(segmentation):
    """Return the label of each frame."""
    lengths, labels = np.array(segmentation).T
    return np.repeat(labels, lengths)


def joint_feature(video, segmentation):
    """Return sums of features of segments, their lengths, and adjacent labels."""
    lengths, labels = np.array(segmentation).T
    segments = np.zeros((N_LABELS, N_FEATURES))
    np.add.at(segments, frame_labels(segmentation), video)
    durations = np.zeros((N_LABELS, LONGEST + 1))
    np.add.at(durations, (labels, lengths), 1.0)
    adjacent = np.zeros((N_LABELS, N_LABELS))
    np.add.at(adjacent, (labels[:-1], labels[1:]), 1.0)
    return np.concatenate([segments.ravel(), durations.ravel(), adjacent.ravel()])


def hamming_loss(segmentation, other):
    """Return the share of frames with a wrong label (eq. 22)."""
    return np.mean(frame_labels(segmentation) != frame_labels(other))


def best_segmentation(video, segmentation, w):
    """Return the maximizer of (21), or without the loss if none is given."""
    n_frames, bounds = len(video), np.cumsum([N_FEATURES, LONGEST + 1]) * N_LABELS
    segments, durations, adjacent = (
        part.reshape(N_LABELS, -1) for part in np.split(w, bounds)
    )
    gains = video @ segments.T
    if segmentation is not None:
        wrong = frame_labels(segmentation)[:, None] != np.arange(N_LABELS)
        gains += wrong / n_frames
    # sums[t] has the sums over frames before t.
    sums = np.vstack([np.zeros(N_LABELS), gains.cumsum(axis=0)])
    best = np.zeros((n_frames + 1, N_LABELS))
    # The best score of what may come before a segment of a label at t, and its label.
    before = np.zeros((n_frames + 1, N_LABELS))
    previous = np.full((n_frames + 1, N_LABELS), -1)
    chosen = np.zeros((n_frames + 1, N_LABELS), dtype=int)
    for end in range(1, n_frames + 1):
        lengths = np.arange(1, min(end, LONGEST) + 1)
        starts = end - lengths
        scores = before[starts] - sums[starts] + durations[:, lengths].T
        chosen[end] = lengths[scores.argmax(axis=0)]
        best[end] = scores.max(axis=0) + sums[end]
        after = best[end][:, None] + adjacent
        previous[end], before[end] = after.argmax(axis=0), after.max(axis=0)
    found, end, label = [], n_frames, int(best[n_frames].argmax())
    while end:
        length = int(chosen[end, label])
        found.append((length, label))
        end -= length
        label = int(previous[end, label])
    return found[::-1]


def main():
    """Compare with a classifier of frames, and with the L1 penalty."""
    train, test = make_videos(20, seed=0), make_videos(50, seed=1)
    print("model           objective  own gap  passes  nonzero  frames right")
    frames = [np.vstack(train[0]), np.concatenate([*map(frame_labels, train[1])])]
    single = MulticlassHingeClassifier(alpha=1e-3).fit(*frames)
    right = np.concatenate(
        [
            single.predict(video) == frame_labels(truth)
            for video, truth in zip(*test, strict=True)
        ]
    )
    print(
        f"{'single frames':14} {single.objective_:10.4f} "
        f"{single.dual_gap_ / single.objective_:8.0e} {'-':>7} "
        f"{np.count_nonzero(single.coef_):8d} {right.mean():13.1%}"
    )
    for penalty, alpha in (("l2", 1e-1), ("l1", 1e-2)):
        svm = StructuredSVM(
            joint_feature, best_segmentation, hamming_loss, alpha=alpha, penalty=penalty
        ).fit(*train)
        print(
            f"{'segments, ' + penalty:14} {svm.objective_:10.4f} "
            f"{svm.dual_gap_ / svm.objective_:8.0e} {svm.history_[0].passes[-1]:7.0f} "
            f"{np.count_nonzero(svm.coef_):8d} {svm.score(*test):13.1%}"
        )


if __name__ == "__main__":
    main()
