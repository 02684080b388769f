"""Writes the text that the demo models are trained on, from the public data sets they come from.

    python3 data/demo/make_training_text.py SHARED_DATA OUT

OUT gets wikitext-test.txt, squad.txt and natural-questions.txt: plain UTF-8, an empty line between documents. The
WikiText validation file, on which the models are judged, is not read. Needs only Python's standard library. The same
input gives the same bytes.
"""

import gzip
import json
import pathlib
import re
import sys


def wikitext(data):
    with gzip.open(data / "wikitext-raw" / "wiki.test.raw.gz", "rt", encoding="utf-8") as file:
        return file.read()


def squad(data):
    """Each paragraph with its questions. The paragraphs of an article are one document."""
    with gzip.open(data / "squad" / "dev-v1.1.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    documents = []
    for article in articles:
        lines = [article["title"].replace("_", " ")]
        for paragraph in article["paragraphs"]:
            lines.append(paragraph["context"])
            lines += [
                f"{question['question'].strip()} {question['answers'][0]['text']}." for question in paragraph["qas"]
            ]
        documents.append("\n".join(lines))
    return "\n\n".join(documents) + "\n"


def natural_questions(data):
    """The question, then the passage that answers it. A repeated passage is left out."""
    seen, documents = set(), []
    with gzip.open(data / "nq-open" / "nq-open-oracle.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            gold = entry["nq_annotated_gold"]
            passage = re.sub(r"<[^>]+>|\s+", " ", gold["long_answer"])
            passage = re.sub(r" +", " ", passage).strip()
            if passage in seen:
                continue
            seen.add(passage)
            documents.append(f"{gold['title']}\n{entry['question']}? {entry['answers'][0]}.\n{passage}")
    return "\n\n".join(documents) + "\n"


def main():
    data, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for name, make in (("wikitext-test", wikitext), ("squad", squad), ("natural-questions", natural_questions)):
        text = make(data)
        (out / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"{name}.txt: {len(text.encode())} bytes")


if __name__ == "__main__":
    main()
