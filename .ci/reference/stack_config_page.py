"""docs/reference/stack-config.md: every key of ``enginehouse:stack``, and what stops the program."""

from field_words import FieldWords, models_below
from layout import attribute_texts, code, page, plain, table
from stack_meanings import MEANINGS

from fleet import node_pools
from fleet.node_pools import NodePool
from fleet.value import Value
from infra import stack_config
from infra.config_words import flow
from infra.node_group_names import LONGEST_ENVIRONMENT
from infra.stack_config import StackConfig
from infra.stack_examples import EXAMPLES
from infra.versions import ADD_ONS, CHARTS, RETRIEVED

WORDS = FieldWords(
    named={
        "an ARN": stack_config.Arn,
        "a region": stack_config.Region,
        "a zone": stack_config.Zone,
        "a mail address": stack_config.Email,
        "a version such as `1.36`": stack_config.Minor,
        "12 digits in quotes": stack_config.Account,
        "an IPv4 network": stack_config.Network,
        "`cr-` and hex digits": stack_config.Reservation,
        "`snap-` and hex digits": stack_config.Snapshot,
        "a folder from `/`": stack_config.FolderPath,
    },
    nothing="nothing",
)
PARTS = (stack_config, node_pools)
INTRODUCTION = """
`Pulumi.<stack>.yaml` holds one structured value, `enginehouse:stack`. The program reads it once, before it registers
anything: an unknown key, a wrong value or values that contradict each other end the preview with one message each,
with the key, what stands there and what would be right. They come in layers: the version first; then unknown keys,
values of a wrong form and what the keys of one section say against each other; then, once the file can be read, all
the rest together with the environment's folder. `pulumi config set --path 'enginehouse:stack.owner' platform` writes
one key and leaves comments as they are.

Beside it: `enginehouse:data` (a list of folders with advisories, relative to the checkout; without it the bundled
snapshot counts), and the keys of the AWS provider such as `aws:profile`.

A key without a value that only an account can give (an AMI release, the version of an add-on) is left open in the
examples; all open ones are named in one message. Where an environment has
[`pools.yaml`](files.md#node-pools-nodepool), its pools and these must say the same. How to fill everything in:
[from an empty account to a cluster](../guides/aws.md).
"""
OF_ONES_OWN = """
## A stack of one's own
A stack of another name than `dev`, `staging` and `prod` takes three steps; `mine` stands for its name.

1. `cp Pulumi.dev.yaml Pulumi.mine.yaml`, and in it set `environment: mine`, put `mine` in the place of `dev` in the
   names of `repositories`, and take `encryptionsalt`, `encryptedkey` and `secretsprovider` out where they stand: they
   are how the other stack encrypts. An account has each repository's name once, so a name that carries another
   environment of the project, one with a `Pulumi.<name>.yaml` or a folder in `environments`, is refused. The name of
   the environment is at most {letters} letters long.
2. Add `mine: {{}}` under `environments` of `policies/policy.yaml`. Program and policy pack refuse an environment that
   does not stand there, so that a mistyped name does not get milder rules. What its cluster may be stands under
   `platform.environments` of the same file, and only where it differs from the default.
3. `pulumi stack init mine`. A folder `environments/mine` may hold manifests, pools and images; it may also be absent.

Several stacks may stand in one account, also of the doubles. **Every stack but `dev` is protected**: `pulumi destroy`
refuses it ([how it ends](../guides/aws.md#take-it-down)).
"""
VERSIONS = """
## Known versions
EKS publishes add-ons per Kubernetes version and region, so theirs are yours to fill in under `versions.addons`. Charts
have a version of their own, read on {day}; `versions.charts` counts before it. KEDA and Kueue are always installed;
device plugins, the GPU operator and the DRA driver where a pool needs them, Cluster Autoscaler where `autoscaler` asks
for it and a pool has room to grow.
"""
OPEN = "yours to fill in"


def render() -> str:
    """The page."""
    sections = "\n\n".join(map(_section, models_below(StackConfig)))
    own = OF_ONES_OWN.format(letters=LONGEST_ENVIRONMENT)
    return page("Stack configuration", "`infra.stack_config`", INTRODUCTION, own, sections, *_versions())


def _section(model: type[Value]) -> str:
    rows = [
        (code(name), WORDS.type_of(field), WORDS.default_of(field), _meaning(model, name))
        for name, field in model.model_fields.items()
    ]
    text = plain((model.__doc__ or "").split("\n\n")[0])
    head = f"## {model.__name__}\n{text}\n\n" + table(("key", "type", "default", "meaning"), rows)
    return f"{head}\n\n```yaml\n{_example(model)}```"


def _example(model: type[Value]) -> str:
    """What may stand in the section; the whole stack's shows its sections in one line each."""
    lines = (f"{key}: {flow(value)}\n" for key, value in EXAMPLES[model].items())
    return "".join(lines)


def _meaning(model: type[Value], name: str) -> str:
    """The page's own word first, then what stands below the field; of a pool, then what its base says."""
    keys = [f"{kind.__name__}.{name}" for kind in (model, NodePool) if issubclass(model, kind)]
    texts = {key: text for part in PARTS for key, text in attribute_texts(part).items()}
    found = next((text for key in keys if (text := MEANINGS.get(key) or texts.get(key))), None)
    if found is None:
        raise LookupError(f"nothing says what {keys[0]} means; give it a docstring, or a line in stack_meanings")
    return plain(found).replace("`None`", "nothing")


def _versions() -> tuple[str, ...]:
    add_ons = [
        (code(item.name), item.purpose, item.version or OPEN, item.minimum, item.source) for item in ADD_ONS.values()
    ]
    charts = [
        (code(item.name), item.version or OPEN, code(item.repository or item.chart), item.source)
        for item in CHARTS.values()
    ]
    return (
        VERSIONS.format(day=RETRIEVED),
        table(("add-on", "for", "version", "at least", "source"), add_ons),
        table(("chart", "version", "from", "source"), charts),
    )
