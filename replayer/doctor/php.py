"""Advice for those who run PHP (WordPress) from a shared mount, whatever its options.

Read in: the PHP manual, 'OPcache: Runtime Configuration', and PHP's main/main.c.
"""

from replayer.doctor.advice import Advice

__all__ = ["PHP_ADVICE"]

_OPCACHE = "PHP manual, 'OPcache: Runtime Configuration'"

PHP_ADVICE = (
    Advice(
        weight="consider",
        setting="opcache.validate_timestamps=0",
        says="with 1, the default, PHP asks the mount for the times of its scripts every "
        "opcache.revalidate_freq seconds (2 unless set); with 0 it does not, and a deployment must "
        "reset the cache (opcache_reset() or a reload of PHP)",
        source=_OPCACHE,
    ),
    Advice(
        weight="consider",
        setting="opcache.max_accelerated_files",
        says="OPcache has room for 10,000 scripts unless set: a site with more of them does not "
        "fit",
        source=_OPCACHE,
    ),
    Advice(
        weight="consider",
        setting="realpath_cache_ttl",
        says="resolved paths are kept for 120 s, in 4096K, unless set; then they are resolved on "
        "the mount again",
        source="PHP source, main/main.c: realpath_cache_size and realpath_cache_ttl",
    ),
)
