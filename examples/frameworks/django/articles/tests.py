from io import StringIO

from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.test import TestCase, TransactionTestCase

from articles.models import Article
from counted import Exact, repeated


def total(article):
    return Article.objects.annotate(total=Exact("views")).get(pk=article.pk).total


class Comment(models.Model):
    article = models.ForeignKey(Article, models.DO_NOTHING)

    class Meta:
        app_label, db_table, managed = "articles", "comments", False


class RolledBack(TestCase):
    """Each test is a transaction that is rolled back."""

    @classmethod
    def setUpTestData(cls):
        cls.article = Article.objects.create(title="One", views=40)

    def test_counts_and_rolls_up(self):
        self.article.count_views()
        self.article.count_views(2)
        self.assertEqual(total(self.article), 43)
        Article.rollup_views()
        self.article.refresh_from_db()
        self.assertEqual((self.article.views, total(self.article)), (43, 43))

    def test_starts_with_the_total_of_the_fixture(self):
        self.assertEqual(total(self.article), 40)

    def test_save_does_not_write_the_column(self):
        self.article.count_views(2)
        Article.rollup_views()
        self.article.title = "Two"
        self.article.save()
        self.article.refresh_from_db()
        self.assertEqual((self.article.title, self.article.views), ("Two", 42))

    def test_lists_exact_totals(self):
        Article.objects.create(title="Two", views=7).count_views(100)
        page = Article.objects.annotate(total=Exact("views")).order_by("-views")[:20]
        self.assertEqual([(article.title, article.total) for article in page], [("One", 40), ("Two", 107)])
        popular = Article.objects.annotate(total=Exact("views")).filter(total__gt=50)
        self.assertEqual([article.title for article in popular], ["Two"])

    def test_recounts(self):
        self.article.count_views()
        self.article.reset_views(12)
        self.assertEqual(total(self.article), 12)

    def test_deletes_the_counts_with_the_row(self):
        self.article.count_views()
        key = self.article.pk
        self.article.delete()
        self.assertEqual(total(Article.objects.create(id=key, title="Again")), 0)

    def test_counts_nothing_if_the_transaction_fails(self):
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            self.article.count_views()
            1 / 0
        self.assertEqual(total(self.article), 40)

    def test_tells_an_error_of_a_routine(self):
        with self.assertRaises(DatabaseError) as raised, transaction.atomic():
            Article(pk=None).count_views()
        self.assertEqual(raised.exception.args[0], 1048)

    def test_reads_the_total_of_a_related_model(self):
        query = str(Comment.objects.annotate(total=Exact("article__views")).query)
        self.assertIn("slots.id = `comments`.`article_id`", query)

    def test_inspects_the_view(self):
        output = StringIO()
        call_command("inspectdb", "articles_views_totals", stdout=output)
        self.assertIn("total = models.BigIntegerField()", output.getvalue())


class Truncated(TransactionTestCase):
    """Each test commits. All tables of models are truncated after it."""

    reset_sequences = True

    def test_starts_at_zero(self):
        article = Article.objects.create(title="One")
        self.assertEqual((article.pk, total(article)), (1, 0))
        article.count_views(5)

    # The same number again: without TRUNCATE, it would have the counts of the other test.
    test_starts_at_zero_again = test_starts_at_zero

    def test_repeats_after_a_lock_wait_timeout(self):
        article = Article.objects.create(title="One")
        other = connection.copy()
        with other.cursor() as cursor:
            cursor.execute("START TRANSACTION")
            cursor.execute("SELECT id FROM articles FOR UPDATE")
        numbers = []

        def work():
            article.count_views()
            try:
                list(Article.objects.select_for_update())
            except DatabaseError as error:
                numbers.append(error.args[0])
                other.close()
                raise

        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        repeated(work)
        self.assertEqual((numbers, total(article)), ([1205], 1))

    def test_tells_a_lost_connection(self):
        article = Article.objects.create(title="One")
        with self.assertRaises(DatabaseError) as raised, transaction.atomic():
            article.count_views()
            other = connection.copy()
            with other.cursor() as cursor:
                cursor.execute("KILL %s" % connection.connection.thread_id())
            other.close()
            article.count_views()
        self.assertIn(raised.exception.args[0], (2006, 2013))
        connection.close()
        self.assertEqual(total(article), 0)
