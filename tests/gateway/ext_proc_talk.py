"""A fake call of external processing, and the messages of a proxy on it."""

from itertools import pairwise

from gateway.ext_proc import FLUSH_SECONDS, ExternalProcessor
from gateway.ext_proc_messages import TYPES
from gateway.http2.grpc_calls import CallRefused

FULL_DUPLEX = {"request_body_mode": 4, "response_body_mode": 4}


class Call:
    """Keeps what is sent; ``is_blocked`` is what a test says."""

    def __init__(self, metadata=()):
        self.metadata, self.sent, self.status = metadata, [], None
        self.is_blocked = self.is_paused = False

    def send(self, message):
        self.sent.append(TYPES["ProcessingResponse"].FromString(message))

    def finish(self, status=0, message=""):
        self.status = self.status if self.status is not None else int(status)

    def pause(self):
        self.is_paused = True

    def resume(self):
        self.is_paused = False


class Timers:
    def __init__(self):
        self.acts = []

    def later(self, seconds, act):
        assert seconds == FLUSH_SECONDS
        self.acts.append(act)

    def fire(self):
        acts, self.acts = self.acts, []
        for act in acts:
            act()


class Talk:
    """A call, and the messages of a proxy."""

    def __init__(self, picker=None, chooser=None, modes=FULL_DUPLEX, metadata=()):
        self.call, self.timers, self.modes = Call(metadata), Timers(), modes
        processor = ExternalProcessor(clock=lambda: 7.0, call_later=self.timers.later, picker=picker, chooser=chooser)
        self.handler = processor.open(self.call)

    def say(self, kind, *, spaces=None, **part):
        message = TYPES["ProcessingRequest"]()
        if self.modes is not None:
            for name, mode in self.modes.items():
                setattr(message.protocol_config, name, mode)
            self.modes = None
        getattr(message, kind).SetInParent()
        for name, value in part.items():
            if name == "headers":
                for key, text in value.items():
                    getattr(message, kind).headers.headers.add(key=key, raw_value=text.encode())
            else:
                setattr(getattr(message, kind), name, value)
        for space, values in (spaces or {}).items():
            message.metadata_context.filter_metadata[space].update(values)
        try:
            self.handler.message(message.SerializeToString())
        except CallRefused as refused:  # what a call does with it
            self.call.finish(refused.status)
        return self

    def request(self, *pieces, spaces=None, trailers=False, ends=True):
        self.say("request_headers", headers={":method": "POST", ":path": "/v1/x"}, spaces=spaces)
        for piece in pieces:
            self.say("request_body", body=piece)
        if trailers:
            return self.say("request_trailers")
        return self.say("request_body", end_of_stream=True) if ends else self

    def respond(self, *pieces, headers=None, trailers=False, spaces=None):
        self.say("response_headers", headers={":status": "200"} | (headers or {}), spaces=spaces)
        for piece in pieces:
            self.say("response_body", body=piece)
        return self.say("response_trailers") if trailers else self.say("response_body", end_of_stream=True)

    def kinds(self):
        return [answer.WhichOneof("response") for answer in self.call.sent]

    def streamed(self, side):
        parts = [getattr(a, side) for a in self.call.sent if a.WhichOneof("response") == side]
        return [part.response.body_mutation.streamed_response for part in parts]

    def body(self, side):
        return b"".join(part.body for part in self.streamed(side))


def pieces_of(body, cuts):
    at = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    return [body[a:b] for a, b in pairwise(at)]
