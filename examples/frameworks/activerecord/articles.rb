# An application with articles, whose views and comments are counted. In Rails, each part is in the file that its comment names.
require "json"
require "active_record"
require_relative "slotted_counter"

DATABASE = {
  adapter: "mysql2", encoding: "utf8mb4",
  host: ENV.fetch("SLOTTED_HOST"), port: ENV.fetch("SLOTTED_PORT").to_i,
  username: ENV.fetch("SLOTTED_USER"), password: ENV.fetch("SLOTTED_PASSWORD"), database: ENV.fetch("SLOTTED_DATABASE")
}.freeze
ActiveRecord::Base.configurations = { "test" => DATABASE }
ActiveRecord::Base.establish_connection(:test)
ActiveRecord::Migration.verbose = false
ActiveRecord::Tasks::DatabaseTasks.env = "test"
ActiveRecord::Tasks::DatabaseTasks.db_dir = __dir__

# config/application.rb
ActiveRecord.raise_on_assign_to_attr_readonly = true
# config.active_record.schema_format = :sql: schema.rb has no routines and no views. The dump has the events, and needs no
# privilege of the server. The client of MySQL 9.7 executes SOURCE, with which Rails loads the file, only with --commands.
ActiveRecord::Tasks::DatabaseTasks.structure_dump_flags =
  %w[--events --no-tablespaces --loose-set-gtid-purged=OFF --loose-skip-masking-policies]
ActiveRecord::Tasks::DatabaseTasks.structure_load_flags = ["--loose-commands"]

# db/migrate/1_create_articles.rb
class CreateArticles < ActiveRecord::Migration[7.2]
  def change
    create_table :articles do |t|
      t.string :title, null: false
      t.bigint :views, null: false, default: 0
      t.bigint :comments_count, null: false, default: 0
      t.index :views
    end
    create_table(:comments) { |t| t.references :article, null: false }
  end
end

# db/migrate/2_count_articles.rb. `run` writes the files of both columns to db.
class CountArticles < ActiveRecord::Migration[7.2]
  def up
    execute_all("up")
    # In place of a job that calls Article.roll_up. In production, every few seconds: here tests read the column meanwhile.
    execute "CREATE EVENT roll_up_articles ON SCHEDULE EVERY 10 MINUTE DO BEGIN " \
            "SET autocommit = 1, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1; CALL articles_views_rollup(NULL); END"
  end

  def down
    # Only an event with the name of the routine is dropped by down.json.
    execute "DROP EVENT roll_up_articles"
    execute_all("down")
  end

  def execute_all(name)
    %w[views comments_count].each do |column|
      JSON.parse(File.read("db/#{ENV.fetch("SLOTTED_SERVER", "mysql")}/articles_#{column}/#{name}.json")).each { |statement| execute statement }
    end
  end
end

# app/models
class Article < ActiveRecord::Base
  include SlottedCounter
  has_slotted_counter :views
  has_slotted_counter :comments_count
  has_many :comments
end

# A counter of associated rows. Conditions and other amounts are Ruby: after_create ..., if: :published?
class Comment < ActiveRecord::Base
  belongs_to :article
  after_create { Article.increment_counter(:comments_count, article_id) }
  before_destroy { lock! }
  after_destroy { Article.decrement_counter(:comments_count, article_id) }
end
