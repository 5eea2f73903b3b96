# A column with counts that many connections increment at the same time, in ActiveRecord. Copy this file to app/models/concerns.
# The table has the package of the column, see articles_test.rb.
#
#   class Article < ApplicationRecord
#     include SlottedCounter
#     has_slotted_counter :views
#   end
#
#   Article.increment_counter(:views, id)     # as before, also decrement_counter, update_counters, article.increment!(:views)
#   article.views_total                       # the exact total; article.views is the total up to the last roll-up
#   Article.with_totals.order(views: :desc)   # views_total of each article, in the same query
#   Article.roll_up                           # every few seconds, in a job
#   Article.recount(:comments_count, "SELECT COUNT(*) FROM comments WHERE article_id = articles.id")
#   Article.truncate_slots                    # in a test that truncates the table
#   SlottedCounter.transaction { ... }        # repeated after a deadlock
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

    # Adds what is missing. Exact also under load if each comment counts in its own transaction: one statement reads both.
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
