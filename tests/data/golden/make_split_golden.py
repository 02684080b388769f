"""Makes split.json: statistics, split checksum and strata of three Amazon sets, for tests/data/public_data_test.cpp.

    python3 make_split_golden.py SHARED_DATA split.json

Needs the Python standard library alone. It shares nothing with the C++ code: users are sorted lists of tuples here,
quintiles come from sorted lists of pairs, and the correlation from statistics.correlation.
"""

import collections
import gzip
import hashlib
import json
import math
import pathlib
import platform
import statistics
import sys

SETS = {
    "beauty": "amazon/Beauty.txt.gz",
    "sports": "amazon/Sports_and_Outdoors.txt.gz",
    "instruments": "amazon/Musical_Instruments_5.json.gz",
}


def sequences(path, by_item=False):
    """{user: [item names in time order]}, users in the order of their first line, and the number of ties."""
    users = {}
    tied = 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        if ".json" not in path.name:
            for line in file:
                user, *items = line.split()
                users[user] = items
            return users, tied
        for place, line in enumerate(file):
            review = json.loads(line)
            users.setdefault(review["reviewerID"], []).append((review["unixReviewTime"], place, review["asin"]))
    for user, reviews in users.items():
        times = collections.Counter(time for time, _, _ in reviews)
        tied += sum(count for count in times.values() if count > 1)
        reviews.sort(key=lambda review: (review[0], review[2] if by_item else review[1]))
        users[user] = [item for _, _, item in reviews]
    return users, tied


def checksum(users):
    lines = (f"{user}\t{' '.join(items[:-2])}\t{items[-2]}\t{items[-1]}\n" for user, items in users.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def item_order(names):
    return sorted(names, key=int) if all(name.isdigit() for name in names) else sorted(names, key=str.encode)


def rows(users, group_of, counts, groups):
    """Tests, mean training count of the test item, mean number of known items, for each group."""
    members = [[] for _ in range(groups)]
    for user, items in users.items():
        members[group_of(user, items)].append((counts[items[-1]], len(items) - 1))
    return [[len(m), statistics.fmean(c for c, _ in m), statistics.fmean(n for _, n in m)] for m in members]


def item_strata(users, counts, names):
    """Five equally large groups of items by (training count, place in the catalogue)."""
    ranked = sorted((counts[name], place, name) for place, name in enumerate(names))
    group = {name: 5 * rank // len(ranked) for rank, (_, _, name) in enumerate(ranked)}
    edges = [max(count for count, _, name in ranked if group[name] == g) for g in range(4)]
    return {"edges": edges, "rows": rows(users, lambda _, items: group[items[-1]], counts, 5)}


def user_strata(users, counts):
    """Groups of users by the number of their training items, between the quintiles of that number."""
    lengths = collections.Counter(len(items) - 2 for items in users.values())
    below, edges = 0, []
    for length in sorted(lengths):
        before, below = below, below + lengths[length]
        # Does a fifth, two fifths, ... of the users end within this length?
        if any(5 * before < fifths * len(users) <= 5 * below for fifths in range(1, 5)):
            edges.append(length)

    def group_of(_, items):
        return sum(len(items) - 2 > edge for edge in edges)

    return {"edges": edges, "rows": rows(users, group_of, counts, len(edges) + 1)}


def describe(path):
    users, tied = sequences(path)
    everything = [item for items in users.values() for item in items]
    names = item_order(set(everything))
    counts = collections.Counter(item for items in users.values() for item in items[:-2])
    lengths = [len(items) for items in users.values()]
    known = [len(items) - 1 for items in users.values()]
    targets = [counts[items[-1]] for items in users.values()]
    return {
        "users": len(users),
        "items": len(names),
        "interactions": len(everything),
        "density": len(everything) / len(users) / len(names),
        "tied": tied,
        "lengths": [min(lengths), statistics.median(lengths), max(lengths)],
        "checksum": checksum(users),
        "checksum_by_item": checksum(sequences(path, by_item=True)[0]),
        "item_frequency": item_strata(users, counts, names),
        "user_activity": user_strata(users, counts),
        "length_frequency_correlation": statistics.correlation(known, targets),
    }


def main():
    shared = pathlib.Path(sys.argv[1])
    result = {"python": platform.python_version()}
    result.update({name: describe(shared / path) for name, path in SETS.items()})
    assert all(math.isfinite(result[name]["length_frequency_correlation"]) for name in SETS)
    pathlib.Path(sys.argv[2]).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
