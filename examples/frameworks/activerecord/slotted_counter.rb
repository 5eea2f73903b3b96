# A column that many connections increment at the same time, in ActiveRecord, such as a counter cache of posts.likes_count. Copy this
# file to app/models/concerns. articles.rb and articles_test.rb are an application with all of it, and its tests.
#
#   class Post < ApplicationRecord
#     include SlottedCounter
#     has_slotted_counter :likes_count        # redirects the methods of Rails that count to the slots
#   end
#
#   class Like < ApplicationRecord
#     belongs_to :post                        # without counter_cache and touch, see below
#     after_create { Post.increment_counter(:likes_count, post_id) }
#     before_destroy { lock! }                # of two that destroy one like, the second gets RecordNotFound: rescue it
#     after_destroy { Post.decrement_counter(:likes_count, post_id) }
#   end
#
#   Post.update_counters(id, likes_count: 5)  # as before, also post.increment!(:likes_count)
#   post.likes_count_total                    # the exact total; post.likes_count is the total up to the last roll-up
#   Post.with_totals.order(likes_count: :desc)    # likes_count_total of each post, in the same query
#   Post.roll_up                              # every few seconds, in a job with EXECUTE on it, in place of an EVENT
#   Post.recount(:likes_count, "SELECT COUNT(*) FROM likes WHERE post_id = posts.id")
#   Post.truncate_slots                       # in a test that truncates the table
#   SlottedCounter.transaction { ... }        # repeated after a deadlock
#
# Migration. For a database that exists, `slotted install --column posts.likes_count` is enough. As files of a migration:
#   slotted generate slotted_counters --no-function --server mariadb --format statements --column posts.likes_count --key 'id BIGINT' --out db
#   JSON.parse(File.read("db/mariadb/posts_likes_count/up.json")).each { |statement| execute statement }
# Account: GRANT SELECT ON posts_likes_count, in addition to what the command prints, because with_totals reads the slots.
#
# - `counter_cache: true` changes the column with an UPDATE unless the post is loaded: exact, but the counts wait for each other.
#   Without it, `post.likes.size` executes a COUNT(*), and `reset_counters` fails: write `likes_count_total` and `recount`.
# - A callback can count under a condition, or an amount. A like that moves to another post needs a callback of its own.
# - `touch: true` locks the row, which child rows lock as well (1213): after_commit { post.touch }.
# - On MariaDB 11.8, lock a busy post before you delete it, Post.lock.find(id).destroy!, or a retry fails again (1020).
# - `destroy` deletes the pending counts of the row, `delete` and `delete_all` do not.
# - Fixtures: add a file without rows for the table of the slots, so that Rails deletes its rows together with the posts.
# - schema.rb contains no routines and no views: use config.active_record.schema_format = :sql, with the two flags of articles.rb.
#   They add the events, and omit what an ordinary account cannot dump or load. Delete the definers from structure.sql: another
#   account cannot create the routines (1227), or calls fail (1449).
module SlottedCounter
  extend ActiveSupport::Concern

  # After these errors of the server the transaction has not counted. Repeat it, from its beginning.
  REPEATABLE = [1205, 1213, 1020, 3101, 30021].freeze

  # The number of the server's error, 2006 or 2013 for a lost connection.
  def self.error_number(error)
    error = error.cause while error.cause
    error.error_number if error.respond_to?(:error_number)
  end

  # Executes a transaction, and repeats it after these errors. After a lost connection it may have counted, so it is not repeated.
  def self.transaction(attempts: 10)
    attempt ||= 0
    ActiveRecord::Base.transaction { yield }
  rescue ActiveRecord::StatementInvalid => error
    attempt += 1
    # Within another transaction, that one must be repeated.
    outer = ActiveRecord::Base.connection.transaction_open?
    raise if outer || attempt == attempts || !REPEATABLE.include?(error_number(error))

    sleep(rand * 0.01 * attempt)
    retry
  end

  included { class_attribute :slotted_counters, default: [] }

  class_methods do
    def has_slotted_counter(column)
      self.slotted_counters += [column.to_s]
      # An UPDATE of all attributes would overwrite the counts of a roll-up. A new article can have a value.
      attr_readonly column
      # Without a trigger, which requires SUPER on MySQL with a binary log. delete and delete_all execute no callback.
      after_destroy { self.class.call_slotted(column, :delete, id) }
      define_method("#{column}_total") do
        name = "#{column}_total"
        has_attribute?(name) ? self[name] : self.class.unscoped.with_totals.find(id)[name]
      end
    end

    # Rails calls it for increment_counter, decrement_counter and increment!.
    def update_counters(id, counters)
      slotted, others = counters.partition { |column, _| slotted_counters.include?(column.to_s) }.map(&:to_h)
      # Always in the same order, so that two transactions cannot deadlock.
      Array(id).sort.product(slotted.sort) { |key, (column, amount)| call_slotted(column, :add, key, amount) }
      super(id, others) if others.compact.any?
    end

    def with_totals
      totals = slotted_counters.map { |column| Arel.sql("CAST(#{slotted_total(column)} AS SIGNED) AS #{column}_total") }
      select(arel_table[Arel.star], *totals)
    end

    # Adds what is missing. Exact also under load if each comment counts in its own transaction, because one statement reads both. On
    # MariaDB, disable the event first, as docs/columns.md says.
    def recount(column, actual)
      difference = "(#{actual}) - (#{slotted_total(column)})"
      wrong = unscoped.where("#{difference} <> 0").pluck(primary_key, Arel.sql("CAST(#{difference} AS SIGNED)"))
      wrong.each { |key, missing| update_counters(key, column => missing) }
    end

    def roll_up
      slotted_counters.each { |column| call_slotted(column, :rollup, nil) }
    end

    def truncate_slots
      slotted_counters.each { |column| connection.truncate("#{table_name}_#{column}") }
    end

    def call_slotted(column, routine, *arguments)
      call = "CALL #{table_name}_#{column}_#{routine}(#{(["?"] * arguments.size).join(", ")})"
      # Clears the query cache, too.
      connection.update(sanitize_sql([call, *arguments]))
    end

    private

    def slotted_total(column)
      slots = "#{table_name}_#{column}"
      "COALESCE(#{table_name}.#{column}, 0) + " \
        "COALESCE((SELECT SUM(count) FROM #{slots} WHERE #{slots}.#{primary_key} = #{table_name}.#{primary_key}), 0)"
    end
  end

  # Rails would assign the attribute, which is read-only.
  def increment!(column, by = 1, touch: nil)
    return super unless slotted_counters.include?(column.to_s)

    self.class.update_counters(id, column => by, touch: touch)
    self
  end
end
