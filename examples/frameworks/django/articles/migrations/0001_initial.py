from django.db import migrations, models

from counted import CounterField, CreateCounter


class Migration(migrations.Migration):
    # MySQL and MariaDB commit after each statement that creates something.
    atomic = False
    operations = [
        migrations.CreateModel(
            "Article",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=100)),
                ("views", CounterField(db_index=True)),
            ],
            {"db_table": "articles"},
        ),
        CreateCounter("Article", "views", "sql/articles_views"),
    ]
