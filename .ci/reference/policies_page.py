"""docs/reference/policies.md: every rule on the platform, what it does per environment, and what limits there are."""

from collections.abc import Iterator
from pathlib import Path

from layout import attribute_texts, code, codes, page, table

from fleet import policy
from fleet.cloud.finding import CloudRule
from fleet.cloud.registry import RULES, THEMES
from fleet.policy import PlatformPolicy, PolicyBook
from policies.adapter import Check
from policies.pack import REMEDIED, WITHOUT_POLICY, checks_by_rule
from sources import policy_file

FILE = Path(__file__).resolve().parents[2] / "policies" / "policy.yaml"
TITLES = {
    "nodes": "Node groups and their launch templates",
    "images": "Images of nodes",
    "sharing": "Shared GPUs",
    "capacity": "How nodes are bought and where they stand",
    "network": "Network",
    "data": "Lustre and data at rest",
    "identity": "Who may do what",
    "workloads": "Manifests and the objects of pods",
    "scaling": "Scaling",
    "limits": "What an environment allows",
}

INTRODUCTION = """
The pack in `policies/` judges what the Pulumi program is about to build: `pulumi preview --policy-pack policies`, and
the same at `pulumi up`. A policy is one rule of `fleet/cloud`, with the rule's id as its name.
[Write one](../guides/write-a-policy.md).

A **mandatory** violation stops the preview, an **advisory** one is shown, **remediate** puts it right and says so.
Which of them a rule is follows from its grade and the environment, below. A rule can be made milder or stricter for an
environment; none can be switched off: where `--policy-pack-config` disables one, it keeps the level of the policy file.

**What is set counts.** Policies judge what the program sets, at the first preview as at every later one. What it leaves
out is judged as left out where that has a meaning: no `releaseVersion` is no pinned release, whichever one the cloud
takes. The rest is what the cloud answers.

**Not judged yet.** At the first preview some inputs are unknown, such as the ARN of a role that does not exist, or a
document that names it. A policy that needs such a value says `not judged yet` and names it. That is no pass: it
judges at the update. A policy that looks at each resource stops one before it is made; a policy that looks at the
stack as a whole speaks at the end, of the preview and of the update.

**Can't be read.** A value of another kind than the cloud's, such as a text for a number, is one mandatory finding of
each policy that needs it, with the resource, the key and the value. It keeps no policy from other resources, and no
other policy from this one.

**Secrets** are in no message. What stands in `data` and `stringData` of a Secret reaches no policy. What the engine
marks as secret is judged like everything else; a finding that would show it says the policy, the resource and the
remedy. Of a Kubernetes object that can't be read the key and the kind of value are told, not the value.

**Kinds that are looked at.** Resources of the providers `aws` and `kubernetes`; of `aws-native` only the provider's
region is. Which kinds carry IAM documents, ACLs and grants stands in `policies/iam_places.py`; not among them are
endpoint, API Gateway and ECR Public policies, which are open by their purpose, and access of people by single
sign-on, except for its inline policies. In an IAM document a condition narrows by a positive match alone, of a key
that says who or what, with a value that names something; an ARN that names a kind of resource (`cluster/*`) counts as
named. A key by its id may be one that AWS manages: only an alias says so. Which device of an image is its root is not
known; a template that maps none is a finding. A route leads to the control plane wherever its gateway listens.
`cost-limit` counts node groups, not single machines.

**Nodes.** Of an instance type that is in no table the layout of its interfaces and its architecture are judged, not how
many cards and EFA interfaces it has. A template that no node group uses is judged by itself. Nodes that Karpenter makes
are not judged, its node classes only count as an autoscaler. Of a reservation, a placement group and a subnet outside
of the stack is known what the program says of them. A network that a file system's group names as a range lets the
file system in where it holds its subnets; of subnets outside of the stack nobody knows that. A bucket is versioned and
encrypted by the resources beside it: settings of the bucket itself, as older programs write them, count as none.
"""
OBJECTS = """
**Pods** are found by what they look like, in objects of every kind and version, members of lists and patches included:
what has containers, the node's namespaces or a `hostPath`. A patch is judged by what it says. Left out is what makes
objects only later and is none itself (values of charts, text in a ConfigMap), an image that a custom kind names
outside a container, and EFA in kinds whose replicas may span several nodes. Booleans in text are read; what can't
be read counts
as the worse of both.

**Triggers** are judged by what their query gives. Of vLLM every metric was seen, so an unknown name is refused; of
other engines only another spelling of a known one is. A query that is too entangled to read is a finding.
"""
NODES = """
**Nodes and networks** are joined by dependencies, ids and names alike. A subnet outside of the stack counts as a zone
of its own; a GPU instance type outside of `fleet/data/instances.json` is a finding. Left out are the types of
Karpenter's node pools and of Auto Mode, which are chosen when pods wait; a launch template, prefix list or ConfigMap
of the device plugin that stands outside of the stack; the main route table of a VPC; layouts of the MIG manager
beyond `all-PROFILE` on GPUs that have MIG; and the rules by which nodes let a file system in.
"""
LIMITS = """
## Limits and levels
They stand in the section `platform` of `policies/policy.yaml`: a `default`, and one section per environment with what
it changes. The environment is `environment` of [the stack's configuration](stack-config.md); one that the file does not
name is an error.
"""
VALUES = "**Bold** = the environment writes it down."


def render() -> str:
    """The page."""
    book = policy_file.read(FILE)
    return page(
        "Policies",
        "`fleet.cloud`, `policies` and `policies/policy.yaml`",
        INTRODUCTION,
        OBJECTS,
        NODES,
        LIMITS,
        *_limits(book),
        "## All policies",
        table(("policy", "grade", "holds where nothing is wrong"), map(_row, RULES)),
        *(part for theme, rules in THEMES.items() for part in _theme(theme, rules)),
    )


def _limits(book: PolicyBook) -> Iterator[str]:
    texts = attribute_texts(policy)
    environments = tuple(book.platform.environments)
    platforms = {name: book.platform_for(name) for name in environments}
    keys = [(code(key), _meaning(key, texts)) for key in PlatformPolicy.model_fields]
    yield table(("key", "meaning"), keys)
    values = [
        (code(key), *(_value(platforms[name], key, book.platform.environments[name]) for name in environments))
        for key in PlatformPolicy.model_fields
    ]
    yield VALUES
    yield table(("key", *map(code, environments)), values)


def _meaning(key: str, texts: dict[str, str]) -> str:
    found = texts.get(f"{PlatformPolicy.__name__}.{key}")
    if found is None:
        raise LookupError(f"nothing says what the platform's {key} means; give it a docstring")
    return found.replace("`None`", "`null`")


def _value(platform: PlatformPolicy, key: str, own: dict[str, object]) -> str:
    stated = platform.model_dump(mode="json")[key]
    if isinstance(stated, dict):
        text = ", ".join(f"{name}: {level}" for name, level in stated.items())
    elif isinstance(stated, list):
        text = codes(stated)
    else:
        text = code("null" if stated is None else stated)
    return f"**{text}**" if key in own and text else text


def _row(rule: CloudRule) -> tuple[str, str, str]:
    return f"[`{rule.id}`](#{rule.id})", rule.grade.value, rule.what


def _theme(theme: str, rules: tuple[CloudRule, ...]) -> Iterator[str]:
    if theme not in TITLES:
        raise LookupError(f"the theme {theme} has no title; give it one in policies_page")
    yield f"## {TITLES[theme]}"
    yield from map(_section, rules)


def _section(rule: CloudRule) -> str:
    lines = [
        f"- Grade: {rule.grade.value}",
        f"- What would be right: {rule.remedy}.",
        f"- Source: {rule.source}",
        *_judged(rule),
    ]
    return f"### {rule.id}\n\n{rule.what}.\n\n" + "\n".join(lines)


def _judged(rule: CloudRule) -> Iterator[str]:
    checks = checks_by_rule().get(rule.id, ())
    if not checks:
        if rule.id not in WITHOUT_POLICY:
            raise LookupError(f"no check decides {rule.id}, and nothing in WITHOUT_POLICY says why")
        yield f"- No policy: {WITHOUT_POLICY[rule.id]}."
        return
    is_alone = all(isinstance(check, Check) and not check.relates for check in checks)
    yield f"- Looks at: {'each resource by itself' if is_alone else 'the stack as a whole'}"
    if rule.id in REMEDIED:
        yield "- The policy can put it right itself."
