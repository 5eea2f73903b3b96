from django.db import models

from counted import CounterField


class Article(models.Model):
    title = models.CharField(max_length=100)
    views = CounterField(db_index=True)

    class Meta:
        db_table = "articles"
