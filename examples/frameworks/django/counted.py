"""A column of a model that is counted by the routines of `slotted install --column`. Copy this file.

    views = CounterField()                                      in the model Article
    CreateCounter("Article", "views", "sql/articles_views")   in a migration

    article.count_views(2)                                      counts, in the transaction of the caller
    Article.objects.annotate(total=Exact("views"))              the exact total, also in filter() and order_by()
"""

import json
import time
from pathlib import Path

from django.db import DatabaseError, connection, migrations, models, transaction
from django.db.models.signals import post_delete


def slots_of(model, field):
    """The model of the table of the slots. It makes flush and TransactionTestCase truncate the slots, too."""
    meta = type("Meta", (), {"app_label": model._meta.app_label, "apps": model._meta.apps, "db_table": field.table(model)})
    fields = {
        "__module__": model.__module__,
        "Meta": meta,
        "pk": models.CompositePrimaryKey("id", "slot"),
        "id": models.BigIntegerField(),
        "slot": models.IntegerField(),
        "count": models.BigIntegerField(default=0),
    }
    return type(model.__name__ + field.name.title(), (models.Model,), fields)


class CounterField(models.BigIntegerField):
    """The total up to the last roll-up. save() of an existing row does not change it."""

    def __init__(self, **options):
        super().__init__(**{"default": 0, **options})

    def table(self, model):
        return f"{model._meta.db_table}_{self.name}"

    def pre_save(self, instance, add):
        return super().pre_save(instance, add) if add else models.F(self.attname)

    def contribute_to_class(self, model, name, **options):
        super().contribute_to_class(model, name, **options)
        # The models of migrations have no methods.
        if model._meta.abstract or model.__module__ == "__fake__":
            return

        def call(routine, *arguments):
            with connection.cursor() as cursor:
                cursor.callproc(f"{self.table(model)}_{routine}", arguments)

        def delete(instance, **_):
            call("delete", instance.pk)

        slots_of(model, self)
        post_delete.connect(delete, sender=model, weak=False)
        setattr(model, f"count_{name}", lambda instance, amount=1: call("add", instance.pk, amount))
        setattr(model, f"reset_{name}", lambda instance, total: call("reset", instance.pk, total))
        setattr(model, f"rollup_{name}", staticmethod(lambda: call("rollup", None)))


class Exact(models.Func):
    """The exact total of a CounterField: the column and what is pending. A list orders by the column, which has an index."""

    def __init__(self, field, **options):
        # The key of the same model: Exact("article__views") needs article__pk.
        key = models.F("__".join([*field.split("__")[:-1], "pk"]))
        super().__init__(models.F(field), key, output_field=models.BigIntegerField(), **options)

    def as_sql(self, compiler, connection, **context):
        (column, values), (key, _) = (compiler.compile(source) for source in self.source_expressions)
        field = self.source_expressions[0].target
        slots = connection.ops.quote_name(field.table(field.model))
        pending = f"SELECT SUM(slots.count) FROM {slots} AS slots WHERE slots.id = {key}"
        return f"CAST({column} + COALESCE(({pending}), 0) AS SIGNED)", values


class CreateCounter(migrations.RunSQL):
    """Executes up.json of the package, and down.json on the way back, which drops the slots with what is pending."""

    def __init__(self, model, field, folder):
        self.arguments = (model, field, folder)
        up, down = (json.loads(Path(folder, name).read_text()) for name in ("up.json", "down.json"))
        super().__init__(up, down)

    def state_forwards(self, app_label, state):
        model = state.apps.get_model(app_label, self.arguments[0])
        slots = slots_of(model, model._meta.get_field(self.arguments[1]))
        state.add_model(migrations.state.ModelState.from_model(slots))


def repeated(work, attempts=10):
    """Calls `work` in a transaction, which is repeated after an error that has rolled it back. A lost connection (2006,
    2013, then 0) is not repeated, because the transaction may have counted, nor is an error of the package (30000 and above)."""
    for attempt in range(attempts):
        try:
            with transaction.atomic():
                return work()
        except DatabaseError as error:
            if error.args[0] not in (1213, 1205, 1020, 3101, 30021) or attempt == attempts - 1 or connection.in_atomic_block:
                raise
            time.sleep(0.01 * attempt)
