#!/usr/bin/env python3
"""Writes src/models/families/reference_key_table.cpp: the keys of config.json that the reference reads, by family.

Usage: make_reference_keys.py SOURCE [SOURCE ...]. Each SOURCE is the unpacked wheel of a version of transformers (`pip
download --no-deps transformers==VERSION`, then unzip). Nothing of it is run or imported: its files are parsed.

A family reads a key if one of the versions does one of these:
- its configuration class, or a class that this one is made from, has a field, an argument of __init__, a class
  attribute, a property or another name of a field (attribute_map) with that name, or asks its keyword arguments for it
- its modeling code, or the code that all models share, takes an attribute of that name from a configuration, also by
  getattr with a constant.
A key has a usual value if every version that has the field or argument gives it the same constant, other than null.

What cannot be followed (getattr with a computed name) is printed, to be looked at by a person.
"""
import ast
import json
import re
import sys
from pathlib import Path

# model_type -> folder of transformers/models, if it has another name
FOLDERS = {"gemma3_text": "gemma3", "qwen3_5_text": "qwen3_5", "qwen3_5_moe_text": "qwen3_5_moe"}
MODEL_TYPES = ("afmoe bloom cohere2 deepseek_v2 deepseek_v3 ernie4_5 exaone4 falcon gemma gemma2 gemma3 gemma3_text "
               "glm4 gpt2 gpt_neo gpt_neox gpt_oss gptj granite granite_swa granitemoe_swa hunyuan_v1_dense lfm2 lfm3 "
               "llama mimo_v2_flash mistral mixtral mpt olmo2 olmo3 opt phi phi3 qwen2 qwen2_moe qwen3 qwen3_5 "
               "qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next seed_oss smollm3 stablelm "
               "starcoder2").split()
# Shared by all models: what reads a configuration on the way to logits.
SHARED = ("modeling_utils.py", "modeling_rope_utils.py", "modeling_layers.py", "masking_utils.py", "cache_utils.py",
          "modeling_attn_mask_utils.py", "modeling_flash_attention_utils.py", "activations.py", "conversion_mapping.py",
          "core_model_loading.py", "fusion_mapping.py", "pytorch_utils.py", "integrations/moe.py",
          "integrations/sdpa_attention.py", "integrations/eager_attention.py", "integrations/flash_attention.py",
          "integrations/flex_attention.py", "integrations/heterogeneity")
CONFIGURATION = re.compile(r"(^|_)config$")
# Configurations of other things than a language model.
OTHER = re.compile(
    r"(quantization|generation|vision|audio|adapter|peft|tp|ep|fsdp|kernel|distributed|deepspeed)_config$")
# Attributes with computed names that stand for keys of a language model (get_text_config of the base class).
FOLLOWED = {"text_config", "decoder", "generator", "text_encoder"}
NOTHING = object()


def constant(node) -> object:
    """The value of a literal, or of the argument `default` of a call; NOTHING if it is neither."""
    if isinstance(node, ast.Call):
        node = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), None)
    try:
        value = ast.literal_eval(node) if node is not None else NOTHING
    except (ValueError, TypeError):
        return NOTHING
    return value if isinstance(value, (bool, int, float, str)) else NOTHING


def last_name(node) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):  # config.get_text_config().x
        return "config" if last_name(node.func) in ("get_text_config", "get_mtp_config") else ""
    return ""


def is_configuration(node) -> bool:
    name = last_name(node)
    return bool(CONFIGURATION.search(name)) and not OTHER.search(name)


FOLLOW_BY_HAND: set[str] = set()


def asked_names(tree, is_object, where: str) -> set[str]:
    """Attributes, other than methods that are called, that the code takes from objects for which is_object is true."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_object(node.value) and id(node) not in called:
            names.add(node.attr)
        if not isinstance(node, ast.Call) or last_name(node.func) not in ("getattr", "hasattr") or not node.args:
            continue
        if is_object(node.args[0]):
            if isinstance(node.args[1], ast.Constant):
                names.add(node.args[1].value)
            else:
                FOLLOW_BY_HAND.add(f"{where}:{node.lineno}: {ast.unparse(node)}")
    return names


class Source:
    """One version of transformers."""

    def __init__(self, folder: Path):
        self.root = folder / "transformers"
        self.version = re.search(r'__version__ = "(.*)"', (self.root / "__init__.py").read_text()).group(1)
        self.trees: dict[Path, ast.Module] = {}

    def tree(self, path: Path) -> ast.Module:
        if path not in self.trees:
            self.trees[path] = ast.parse(path.read_text())
        return self.trees[path]

    def class_named(self, path: Path, name: str):
        """(file, class), following imports to the files of other models and of the base classes."""
        for node in self.tree(path).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return path, node
            if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
                base = path.parents[node.level - 1] if node.level else self.root.parent
                target = base.joinpath(*(node.module or "").split("."))
                for file in (target.with_suffix(".py"), target / "__init__.py"):
                    if file.exists() and (node.level or str(target).startswith(str(self.root))):
                        return self.class_named(file, name)
        return None

    def of_class(self, path: Path, node: ast.ClassDef) -> tuple[set[str], dict[str, object]]:
        """Names that the class reads, and the defaults of its fields."""
        names, defaults = set(), {}
        for base in node.bases:
            found = self.class_named(path, last_name(base))
            if found is not None:
                base_names, base_defaults = self.of_class(*found)
                names |= base_names
                defaults |= base_defaults
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                names.add(item.target.id)
                if "ClassVar" not in ast.unparse(item.annotation):
                    defaults[item.target.id] = constant(item.value)
            elif isinstance(item, ast.Assign):
                for target in item.targets:
                    names.add(target.id)
                    if target.id == "attribute_map" and isinstance(item.value, ast.Dict):
                        names |= {key.value for key in item.value.keys} | {value.value for value in item.value.values}
            elif isinstance(item, ast.FunctionDef):
                if item.decorator_list:  # a property
                    names.add(item.name)
                names |= asked_names(item, lambda object_: last_name(object_) in ("self", "cls"), str(path))
                names |= self.keywords(item)
                if item.name == "__init__":
                    arguments = item.args.args[1:] + item.args.kwonlyargs
                    values = list(item.args.defaults) + list(item.args.kw_defaults)
                    for argument, value in zip(arguments, [None] * (len(arguments) - len(values)) + values):
                        names.add(argument.arg)
                        defaults[argument.arg] = constant(value)
        return names, defaults

    @staticmethod
    def keywords(function: ast.FunctionDef) -> set[str]:
        """kwargs.pop("x"), kwargs.get("x"), kwargs["x"], "x" in kwargs."""
        names = set()
        for node in ast.walk(function):
            asked = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                if node.func.attr in ("pop", "get") and "kwargs" in last_name(node.func.value):
                    asked = node.args[0]
            elif isinstance(node, ast.Subscript) and "kwargs" in last_name(node.value):
                asked = node.slice
            elif isinstance(node, ast.Compare) and "kwargs" in last_name(node.comparators[0]):
                asked = node.left
            if isinstance(asked, ast.Constant) and isinstance(asked.value, str):
                names.add(asked.value)
        return names

    def configuration_class(self, folder: str, model_type: str):
        path = self.root / "models" / folder / f"configuration_{folder}.py"
        if not path.exists():
            return None
        for node in self.tree(path).body:
            if not isinstance(node, ast.ClassDef):
                continue
            for item in node.body:
                if isinstance(item, ast.Assign) and item.targets[0].id == "model_type":
                    if constant(item.value) == model_type:
                        return path, node
        return None

    def of_family(self, model_type: str) -> tuple[set[str], dict[str, object]]:
        folder = FOLDERS.get(model_type, model_type)
        found = self.configuration_class(folder, model_type)
        if found is None:
            return set(), {}
        names, defaults = self.of_class(*found)
        modeling = self.root / "models" / folder / f"modeling_{folder}.py"
        return names | asked_names(self.tree(modeling), is_configuration, str(modeling)), defaults

    def shared(self) -> tuple[set[str], dict[str, object]]:
        names, defaults = set(), {}
        for entry in SHARED:
            path = self.root / entry
            files = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []
            for file in files:
                names |= asked_names(self.tree(file), is_configuration, str(file))
        base = self.root / "configuration_utils.py"
        for node in self.tree(base).body:
            if isinstance(node, ast.ClassDef) and node.name.lower() == "pretrainedconfig":
                of_base, defaults = self.of_class(base, node)
                names |= of_base
        return names, defaults


def is_key(name: str) -> bool:
    return isinstance(name, str) and not name.startswith("__") and re.fullmatch(r"[A-Za-z0-9_.]+", name) is not None


def lines_of(words: list[str]) -> list[str]:
    lines, line = [], ""
    for word in words:
        if line and len(line) + 1 + len(word) > 118:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return lines + [line]


def written(key: str, default: object) -> str:
    text = "" if default is NOTHING else json.dumps(default)
    return f"{key}={text}" if text and not re.search(r"\s", text) else key


def merged(found: list[tuple[set[str], dict[str, object]]]) -> dict[str, str]:
    """Each name that a version reads, as it is written: with its default if all versions agree on it."""
    words = {}
    for name in set().union(*(names for names, _ in found)):
        defaults = [defaults[name] for _, defaults in found if name in defaults]
        same = defaults and all(type(value) is type(defaults[0]) and value == defaults[0] for value in defaults)
        if is_key(name):
            words[name] = written(name, defaults[0] if same else NOTHING)
    return words


def main() -> None:
    sources = [Source(Path(argument)) for argument in sys.argv[1:]]
    shared = merged([source.shared() for source in sources] + [(FOLLOWED, {})])
    text = [
        "// Written by tests/models/configs/make_reference_keys.py from the source of transformers "
        + " and ".join(source.version for source in sources) + ".",
        "// Do not edit it by hand.",
        '#include "models/families/reference_keys.h"', "",
        "namespace gainlens::models::reference {", "",
        "// By every configuration class, and by code that all models share.",
        'const std::string_view shared_keys = R"(', *lines_of(sorted(shared.values())), ')";', "",
        "const std::vector<FamilyKeys>& family_keys() {",
        "  static const std::vector<FamilyKeys> table = {",
    ]
    for model_type in MODEL_TYPES:
        words = merged([source.of_family(model_type) for source in sources])
        assert words, model_type
        own = sorted(word for name, word in words.items() if shared.get(name) != word)
        text += [f'      {{"{model_type}", R"(', *lines_of(own), ')"},']
    text += ["  };", "  return table;", "}", "", "}  // namespace gainlens::models::reference", ""]
    target = Path(__file__).parents[3] / "src/models/families/reference_key_table.cpp"
    target.write_text("\n".join(text))
    print(f"{len(shared)} shared keys; {len(MODEL_TYPES)} families")
    print(*sorted(FOLLOW_BY_HAND), sep="\n")


if __name__ == "__main__":
    main()
