"""What a warm-up takes from users that do a number of transactions. Said before anything runs."""

from replayer.measure.units import format_many, format_time_ns
from replayer.plan.document import Plan


def say_warmed(plan: Plan) -> str | None:
    """Return what is not measured of users' transactions, in a sentence; None: nothing is lost."""
    each = plan.transactions_per_user
    if each is None or not plan.warm_up_ns:
        return None
    return (
        f"those that it takes of the {format_many(each, 'transaction')} of each user are not "
        f"measured (iterations begin with it; it lasts {format_time_ns(plan.warm_up_ns)})"
    )
