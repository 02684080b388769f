"""Times epochs of training of a plain SASRec in PyTorch without padding: the fastest program that we could write.

    OMP_NUM_THREADS=1 python bench/sasrec_packed_epoch.py --data Beauty.txt.gz --epochs 3

Needs torch and numpy. Data, model, batches and sizes are those of sasrec_epoch.py, with the norm after the embeddings
of `--preset paper`. The histories of a batch lie one after another, sorted by length. Everything but attention sees
them as one list of positions; attention takes the histories of one length at a time, so that it pads nothing
(scaled_dot_product_attention, causal). Logits exist at the positions of items alone, in one product, and Adam is fused.

The seconds are those of the processor (user time) of whole epochs, of training alone.
"""

import argparse
import pathlib
import resource
import sys

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"))
import evaluate_iclrec  # noqa: E402
import sasrec_epoch  # noqa: E402

WIDTH, HEADS, LAYERS, INNER, POSITIONS, BATCH, DROPOUT = 64, 2, 2, 256, 50, 256, 0.5


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x, groups):
        """x [position, width]; groups: (first position, number of histories, their length)."""
        projected = self.projections(self.attention_norm(x))
        mixed = []
        for first, count, length in groups:
            part = projected[first : first + count * length].view(count, length, 3, HEADS, WIDTH // HEADS)
            query, key, value = part.permute(2, 0, 3, 1, 4)
            found = functional.scaled_dot_product_attention(query, key, value, dropout_p=DROPOUT, is_causal=True)
            mixed.append(found.transpose(1, 2).reshape(count * length, WIDTH))
        x = x + functional.dropout(self.output(torch.cat(mixed)), DROPOUT)
        return x + functional.dropout(self.down(functional.gelu(self.up(self.mlp_norm(x)))), DROPOUT)


class SASRec(nn.Module):
    def __init__(self, items):
        super().__init__()
        self.items, self.places = nn.Embedding(items + 1, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.embedding_norm, self.final_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def loss(self, items, places, targets, groups):
        """All [position]; the mean over all of them."""
        x = functional.dropout(self.embedding_norm(self.items(items) + self.places(places)), DROPOUT)
        for layer in self.layers:
            x = layer(x, groups)
        return functional.cross_entropy(self.final_norm(x) @ self.items.weight[1:].T, targets - 1)


def packed(histories):
    """The inputs, places and targets of the histories one after another, and their groups by length."""
    histories = sorted(histories, key=len)
    groups, first, at = [], 0, 0
    while first < len(histories):
        length = len(histories[first]) - 1
        count = sum(len(history) - 1 == length for history in histories[first:])
        groups.append((at, count, length))
        first, at = first + count, at + count * length
    items = [item for history in histories for item in history[:-1]]
    places = [place for history in histories for place in range(POSITIONS - len(history) + 1, POSITIONS)]
    targets = [item for history in histories for item in history[1:]]
    return torch.tensor(items), torch.tensor(places), torch.tensor(targets), groups


def user_seconds():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    sequences = evaluate_iclrec.read_sequences(arguments.data)
    histories = [items[:-2][-POSITIONS - 1 :] for items in sequences if len(items) > 3]
    model = SASRec(max(map(max, sequences)))
    sasrec_epoch.initialise(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(1, arguments.epochs + 1):
        begin, losses = user_seconds(), []
        for users in torch.randperm(len(histories)).split(BATCH):
            loss = model.loss(*packed([histories[user] for user in users.tolist()]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seconds = user_seconds() - begin
        print(f"epoch {epoch}: {seconds:.2f} s, mean loss {sum(losses) / len(losses):.4f}, {len(losses)} steps")
    print(f"peak {sasrec_epoch.peak_bytes() / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
