require "active_support/test_case"
require "minitest/autorun"
require_relative "articles"

# Each test is rolled back. The fixtures of the slots have no rows: Rails deletes the pending counts together with the articles.
class ArticleTest < ActiveSupport::TestCase
  include ActiveRecord::TestFixtures
  self.fixture_paths = ["#{__dir__}/fixtures"]
  fixtures :all
  set_fixture_class articles: Article

  setup do
    @one, @two = articles(:one, :two)
  end

  def views = Article.with_totals.order(:title).map(&:views_total)

  test "counts in a transaction" do
    Article.transaction do
      Article.increment_counter(:views, @one.id)
      @one.increment!(:views, 2)
      Article.update_counters([@two.id, @one.id], views: 5)
    end
    assert_equal [48, 12], views
    Article.transaction(requires_new: true) do
      Article.decrement_counter(:views, @one.id)
      assert_equal [47, 12], views
      raise ActiveRecord::Rollback
    end
    assert_equal [48, 12], views
    assert_equal [48, 40, 40], [@one.views_total, @one.views, @one.reload.views]
  end

  test "a page has the order of the column and exact totals" do
    Article.update_counters(@two.id, views: 90)
    page = -> { Article.with_totals.order(views: :desc).limit(1).map { |article| [article.title, article.views_total] } }
    assert_equal [["One", 40]], page.call
    Article.roll_up
    assert_equal [["Two", 97]], page.call
  end

  test "a read after a count is current in the query cache" do
    Article.cache do
      assert_equal [40, 7], views
      Article.increment_counter(:views, @one.id)
      assert_equal [41, 7], views
    end
  end

  test "save does not write the column" do
    Article.increment_counter(:views, @one.id)
    Article.roll_up
    assert_raises(ActiveRecord::ReadonlyAttributeError) { @one.views = 5 }
    @one.update!(title: "Uno")
    assert_equal ["Uno", 41], Article.where(id: @one.id).pick(:title, :views)
  end

  test "the counts are deleted with the row" do
    Article.increment_counter(:views, @one.id)
    @one.destroy!
    assert_equal 0, Article.connection.select_value("SELECT COUNT(*) FROM articles_views")
  end

  test "associated rows count, and a recount adds what is missing" do
    comments = Array.new(3) { @one.comments.create! }
    comments.first.destroy!
    assert_equal 2, @one.comments_count_total
    # Two requests that have read the same comment.
    again = Comment.find(comments[1].id)
    comments[1].destroy!
    assert_raises(ActiveRecord::RecordNotFound) { again.destroy! }
    assert_equal 1, @one.comments_count_total
    comments.last.delete
    Article.increment_counter(:comments_count, @two.id)
    Article.recount(:comments_count, "SELECT COUNT(*) FROM comments WHERE article_id = articles.id")
    assert_equal [0, 0], Article.with_totals.order(:title).map(&:comments_count_total)
  end

  test "an error of a routine has a number" do
    rejected = assert_raises(ActiveRecord::StatementInvalid) { Article.update_counters(@one.id, views: nil) }
    assert_equal 1048, SlottedCounter.error_number(rejected)
    assert_equal [40, 7], views
  end
end

class CommittedTest < ActiveSupport::TestCase
  setup { @article = Article.create!(title: "One", views: 40) }

  # Rails inserts fixtures once, and does not see that their tables have been truncated.
  teardown do
    truncate
    ActiveRecord::FixtureSet.reset_cache
  end

  # As DatabaseTasks.truncate_all and DatabaseCleaner: all tables, also those of the slots.
  def truncate
    tables = Article.connection.tables - %w[schema_migrations ar_internal_metadata]
    Article.connection.truncate_tables(*tables)
  end

  test "after a truncation, a new row with the same ID has no counts" do
    [-> { truncate }, -> { Article.truncate_slots; Article.connection.truncate("articles") }].each do |empty|
      Article.increment_counter(:views, @article.id)
      empty.call
      assert_equal 1, (@article = Article.create!(title: "One", views: 40)).id
      assert_equal 40, @article.views_total
    end
  end

  test "fixtures delete what other tests have left in their tables" do
    id = ActiveRecord::FixtureSet.identify(:one)
    Article.increment_counter(:views, id)
    ActiveRecord::FixtureSet.reset_cache
    ActiveRecord::FixtureSet.create_fixtures("#{__dir__}/fixtures", %w[articles articles_views])
    assert_equal 40, Article.find(id).views_total
  end

  test "a recount is exact while others count" do
    5.times { Comment.insert({ article_id: @article.id }) }
    writers = Array.new(3) do
      Thread.new do
        30.times do |count|
          Article.transaction do
            comment = Comment.create!(article: @article)
            comment.destroy! if count % 3 == 0
            raise ActiveRecord::Rollback if count % 5 == 0
          end
        end
      end
    end
    while writers.any?(&:alive?)
      Article.recount(:comments_count, "SELECT COUNT(*) FROM comments WHERE article_id = articles.id")
      Article.roll_up
    end
    writers.each(&:join)
    assert_equal @article.comments.count, @article.comments_count_total
  end

  test "a transaction is repeated after a deadlock only" do
    attempts = 0
    count = lambda do |error|
      SlottedCounter.transaction do
        Article.increment_counter(:views, @article.id)
        attempts += 1
        Article.connection.execute("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = #{error}") if attempts != 2
      end
    end
    count.call(1213)
    assert_equal [2, 41], [attempts, @article.views_total]
    assert_raises(ActiveRecord::StatementInvalid) { count.call(30003) }
    assert_equal [3, 41], [attempts, @article.views_total]
  end

  test "a lost connection has another number, and the next call connects again" do
    session = Article.connection.select_value("SELECT CONNECTION_ID()")
    lost = assert_raises(ActiveRecord::ConnectionFailed) do
      Article.transaction do
        Article.increment_counter(:views, @article.id)
        Thread.new { Article.connection.execute("KILL #{session}") }.join
        Article.increment_counter(:views, @article.id)
      end
    end
    assert_includes [2006, 2013], SlottedCounter.error_number(lost)
    Article.increment_counter(:views, @article.id)
    assert_equal 41, @article.views_total
  end

  test "structure.sql has the routines and the event" do
    reload(:sql) do |structure|
      # The definer is the account of the dump. With another account, the load or the calls fail: 1227, 1449.
      structure.write(structure.read.gsub(/ ?DEFINER *= *`[^`]*`@`[^`]*`/, ""))
    end
    counts
    events = "SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()"
    assert_equal 1, Article.connection.select_value(events)
  end

  # Dumps the schema and loads it into an empty database: rails db:schema:dump, db:schema:load.
  def reload(format)
    config = ActiveRecord::Base.configurations.configs_for(env_name: "test").first
    tasks = ActiveRecord::Tasks::DatabaseTasks
    tasks.dump_schema(config, format)
    yield Pathname(tasks.schema_dump_path(config, format)) if block_given?
    tasks.purge(config)
    tasks.load_schema(config, format)
  end

  def counts
    @article = Article.create!(title: "One", views: 40)
    Article.increment_counter(:views, @article.id)
    assert_equal [41, 40], [@article.views_total, @article.views]
    Article.roll_up
    assert_equal 41, @article.reload.views
  end
end
