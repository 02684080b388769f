"""Prints a made-up ratings file in MovieLens' form, user::item::rating::time, for docs/recommend-tutorial.md.

    python3 data/demo/make_ratings.py > ratings.dat

600 users go through a catalogue of 150 items. With probability 0.7 the next item is one of three that follow the last
one, else a popular one. A few users have two items and are dropped. Times are seconds; a few are tied.
"""

import random

random.seed(20)
USERS, ITEMS = 600, 150


def popular():
    return int(ITEMS * random.random() ** 2)


for user in range(1, USERS + 1):
    item, time = popular(), 1_600_000_000 + random.randrange(10_000_000)
    for _ in range(2 if user % 50 == 0 else random.randint(4, 14)):
        print(f"{user}::{item + 1}::{random.randint(1, 5)}::{time}")
        last = item
        item = (last * 7 + random.choice([1, 2, 5])) % ITEMS if random.random() < 0.7 else popular()
        time += 0 if item != last and random.random() < 0.01 else random.randint(60, 100_000)
