"""DeepSpeed: the server of deepspeed-mii, whose few flags say little. The data refuses it; it can still be read."""

from engines.draft import Draft
from engines.engine import plain_command, put_parallelism
from engines.wishes import Wish
from fleet.engine import CommandLine


class Deepspeed:
    """Command lines of deepspeed-mii."""

    def derive(self, wish: Wish, draft: Draft, host: str | None, port: int | None) -> None:
        """Everything that the manifest says and a flag exists for."""
        draft.put("--model", wish.spec.model.id)
        draft.put("--deployment-name", wish.served_name)
        draft.put("--host", host)
        draft.put("--port", port)
        if wish.spec.batch is not None:
            draft.put("--max-length", wish.spec.batch.max_model_len)
        put_parallelism(wish, draft)

    def command(self, wish: Wish, draft: Draft) -> CommandLine:
        """The finished command."""
        return plain_command(wish, draft, positional=False)
