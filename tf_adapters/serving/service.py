"""Decides about requests: which are answered, by which adapter, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import contextvars
import time
from typing import Any

from tf_adapters.common.errors import cut
from tf_adapters.serving import sources
from tf_adapters.serving.catalog import Catalog
from tf_adapters.serving.catalog import Offer
from tf_adapters.serving.limits import Limits
from tf_adapters.serving.limits import estimated_tokens
from tf_adapters.serving.messages import Ask
from tf_adapters.serving.messages import EngineClient
from tf_adapters.serving.messages import Reply
from tf_adapters.serving.request_error import LoadError
from tf_adapters.serving.request_error import RequestError
from tf_adapters.serving.under_way import UnderWay

# Seconds between two looks into the folders for adapters that were not there.
_LOOK_AGAIN = 1.0
# Kinds of heads that split long texts into windows instead of truncating them.
_WITH_WINDOWS = ("span", "tagging")
# Maximum number of adapters that are loaded at the same time at the start.
_LOADS = 4


class Service:
    """Answers requests for predictions, and loads and unloads adapters.

    All methods run in one event loop.

    Args:
        engine: `EngineClient`.
        limits: `Limits`.
        places: Folders and addresses of adapters, see `find_adapters`.
        allowed: Sources that clients may name, see `is_allowed`.
        at_first_use: Whether adapters are loaded when they are first asked for,
            including those that come into the folders later. Otherwise, all are
            loaded at the start.
    """

    def __init__(
        self,
        engine: EngineClient,
        limits: Limits,
        places: Iterable[str] = (),
        allowed: Iterable[str] = (),
        at_first_use: bool = False,
    ) -> None:
        self.engine = engine
        self.limits = limits
        self.catalog = Catalog()
        self.under_way = UnderWay()
        self._places = list(places)
        self._allowed = list(allowed)
        self._at_first_use = at_first_use
        self._looked = -_LOOK_AGAIN
        # The look into the folders that is under way.
        self._looking: asyncio.Task[dict[str, str]] | None = None
        # The first loads that are under way, by the keys of their offers, so
        # that all requests for an adapter wait for one load.
        self._loading: dict[str, asyncio.Task[dict[str, Any]]] = {}
        # Names that stay away, although they are in the folders, and the
        # version that a load would have had when they were unloaded.
        self._unloaded: dict[str, int] = {}

    async def declare(self, declared: Mapping[str, str]) -> None:
        """Serves the declared adapters, a dict from name to source.

        Those that were declared before and now are not are unloaded.
        """
        for offer in self.catalog.declare(declared):
            await self._retire(offer)
        if self._at_first_use:
            return
        gate = asyncio.Semaphore(_LOADS)

        async def load(offer: Offer) -> None:
            async with gate:
                with contextlib.suppress(RequestError):
                    await self._facts(offer)

        new = [o for o in self.catalog.offers() if not (o.facts or o.problem)]
        await self.engine.load_first({o.key: o.source for o in new})
        await asyncio.gather(*map(load, new))
        await self.engine.prepare()

    async def predict(
        self, name: str, instances: list[Any], seconds: float
    ) -> tuple[Offer, Reply]:
        """Returns the adapter that answered, and its reply.

        Args:
            name: Name of the adapter.
            instances: List of texts, lists or dicts; see `instances`.
            seconds: Seconds that the request may take.

        Raises:
            RequestError: If the request is refused or fails.
        """
        offer = await self.offer(name)
        offer.check()
        self.limits.check_instances(instances)
        if self.under_way.total >= self.limits.waiting:
            raise RequestError(429, "Too many requests wait.", retry_after=1)
        async with self.under_way.counting(offer.key):
            reply = await self._reply(offer, instances, seconds)
        if reply.is_damaged:
            self.catalog.fail(offer, LoadError(reply.status, reply.message))
        if reply.status != 200:
            wait = 1 if reply.status in (429, 503) else None
            raise RequestError(reply.status, reply.message, wait)
        return offer, reply

    async def _reply(
        self, offer: Offer, instances: list[Any], seconds: float
    ) -> Reply:
        deadline = time.time() + seconds
        try:
            async with asyncio.timeout(seconds):
                # Loaded first, so that no batch has to wait for that.
                facts = await self._facts(offer)
                is_cut = facts["head"] not in _WITH_WINDOWS
                longest = facts["max_length"] if is_cut else None
                ask = Ask(
                    *(offer.key, offer.source, instances),
                    tokens=estimated_tokens(instances, longest),
                    deadline=deadline,
                )
                return await self.engine.answer(ask)
        except TimeoutError:
            raise RequestError(
                504, f"There was no answer within {seconds:g} seconds."
            ) from None

    async def offer(self, name: str) -> Offer:
        """Returns the offer of a name, after a look for new adapters.

        Raises:
            RequestError: With status 404 if there is no adapter of this name.
        """
        if self.catalog.find(name) is None:
            await self._look()
        return self.catalog.get(name)

    async def offers(self) -> list[Offer]:
        """Returns all offers, sorted by name, after a look for new adapters."""
        await self._look()
        return self.catalog.offers()

    async def _look(self) -> None:
        """Adds adapters that came into the folders, if the option is set."""
        is_recent = time.monotonic() - self._looked < _LOOK_AGAIN
        if self._at_first_use and (self._looking or not is_recent):
            await self._present()

    async def _present(self) -> dict[str, str]:
        """Returns the adapters in the folders, a dict from name to source.

        If a look into the folders is under way, waits for its result.
        """
        if self._looking is None:
            self._looked = time.monotonic()
            # In a context of its own, for the same reason as loads.
            self._looking = asyncio.create_task(
                self._read_folders(), context=contextvars.Context()
            )
        seconds = self.limits.seconds
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._looking)
        except TimeoutError:
            raise RequestError(
                504,
                f"The server's folders were not read within {seconds:g} "
                "seconds.",
            ) from None

    async def _read_folders(self) -> dict[str, str]:
        try:
            # In a thread, so that clients do not wait for a slow disk.
            found = await asyncio.to_thread(
                sources.present_adapters, self._places
            )
        finally:
            self._looking = None
        for name, source in found.items() if self._at_first_use else ():
            if not (self.catalog.find(name) or name in self._unloaded):
                self.catalog.put(self.catalog.new_offer(name, source))
        return found

    async def facts(self, name: str) -> tuple[Offer, dict[str, Any]]:
        """Returns an adapter and the dict that describes it.

        The adapter is loaded if it was not yet.

        Raises:
            RequestError: With status 404 if there is no adapter of this name,
                409 if it cannot be used, or 503 if it cannot be read now.
        """
        offer = await self.offer(name)
        return offer, await self._facts(offer)

    async def _facts(self, offer: Offer) -> dict[str, Any]:
        offer.check()
        if offer.facts is not None:
            return offer.facts
        loading = self._loading.get(offer.key)
        if loading is None:
            # In a context of its own: Ray cancels what a request has begun when
            # its client goes, and others wait for this load, too.
            loading = asyncio.create_task(
                self._first_load(offer), context=contextvars.Context()
            )
            self._loading[offer.key] = loading
            loading.add_done_callback(lambda _: self._loaded(offer.key))
        return await asyncio.shield(loading)

    async def _first_load(self, offer: Offer) -> dict[str, Any]:
        if offer.problem is not None:
            # Others wait, so that a Hub that does not answer stops nobody.
            self.catalog.postpone(offer)
        try:
            facts = await self.engine.load(offer.key, offer.source)
        except LoadError as error:
            self.catalog.fail(offer, error)
            raise
        self.catalog.replace(offer, facts=facts, problem=None)
        return facts

    def _loaded(self, key: str) -> None:
        loading = self._loading.pop(key)
        # All requests may have ended. Without this, Python prints the error.
        if not loading.cancelled():
            loading.exception()

    async def load(self, name: str, source: str | None = None) -> Offer:
        """Loads an adapter, or its present files if it was loaded before.

        If it cannot be loaded, an adapter of this name stays as it was. Of
        several loads at the same time, the last that began wins. An unload
        that began later wins, too.

        Args:
            name: Name of the adapter.
            source: Path or `hf://` address. Default: where the adapter of this
                name was, or is in the server's folders.

        Returns:
            The adapter's new offer. If another load of the same name began
            later and has finished, its offer is returned.

        Raises:
            RequestError: With status 400 if the source is malformed, 403 if it
                is not allowed, 404 if there is no source, 409 if the adapter
                is damaged or does not fit or was unloaded meanwhile, or 503 if
                reading it failed.
        """
        # Before any wait, because the last load that began wins.
        version = self.catalog.next_version()
        offer = Offer(name, await self._source(name, source), version)
        facts = await self.engine.load(offer.key, offer.source)
        before = self.catalog.find(name)
        if before is not None and before.version > offer.version:
            await self._retire(offer)
            return before
        if self._unloaded.get(name, 0) > offer.version:
            await self._retire(offer)
            raise RequestError(
                409, f"Adapter `{cut(name)}` was unloaded during this load."
            )
        self._unloaded.pop(name, None)
        self.catalog.put(offer)
        self.catalog.replace(offer, facts=facts)
        if before is not None:
            await self._retire(before)
        return offer

    async def _source(self, name: str, source: str | None) -> str:
        if source is not None:
            sources.check_allowed(source, self._allowed)
            return source
        known = self.catalog.find(name)
        if known is not None:
            return known.source
        if self._looking is not None:
            # That look may have begun before the adapter was there.
            await asyncio.shield(self._looking)
        found = (await self._present()).get(name)
        if found is None:
            raise RequestError(
                404,
                f"There is no adapter `{cut(name)}` in the server's folders. "
                "Name its `source` in the request's parameters.",
            )
        return found

    async def unload(self, name: str) -> None:
        """Unloads an adapter, after the requests that use it have ended.

        Raises:
            RequestError: With status 404 if there is no adapter of this name.
        """
        offer = self.catalog.remove(name)
        self._unloaded[name] = self.catalog.next_version()
        await self._retire(offer)

    async def _retire(self, offer: Offer) -> None:
        await self.under_way.wait_for_end(offer.key)
        await self.engine.forget(offer.key)
