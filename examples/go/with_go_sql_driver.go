// Counts with go-sql-driver/mysql. A sale needs inTransaction, placeOrder and seatsLeft: each order takes its seats once, even while
// sessions are killed. viewArticle and views count in a column, Counts counts in memory. To run it: examples/README.md.
package main

import (
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	mathrand "math/rand"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	unknownCounter = 30003
	notEnough      = 30016
	duplicate      = 1062
	attempts       = 10
)

// 1305: a savepoint that does not exist any more, because error 1213 has rolled back the whole transaction.
// 1105, 1317, 1329: KILL QUERY. 1969: max_statement_time of MariaDB.
var repeat = map[uint16]bool{
	1020: true, 1105: true, 1180: true, 1205: true, 1213: true, 1305: true, 1317: true, 1329: true, 1969: true, 3101: true, 30021: true,
}

// newRequest returns 32 hexadecimal digits.
func newRequest() string {
	request := make([]byte, 16)
	rand.Read(request)
	return fmt.Sprintf("%x", request)
}

// number returns the number of an error of the server, or 0.
func number(err error) uint16 {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return server.Number
	}
	return 0
}

// isLost includes the errors of the server after KILL.
func isLost(err error) bool {
	var network net.Error
	if number(err) == 1927 || number(err) == 3169 {
		return true
	}
	return errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) || errors.As(err, &network)
}

func open() (*sql.DB, error) {
	settings := mysql.NewConfig()
	settings.Net = "tcp"
	settings.Addr = net.JoinHostPort(os.Getenv("SLOTTED_HOST"), os.Getenv("SLOTTED_PORT"))
	settings.User = os.Getenv("SLOTTED_USER")
	settings.Passwd = os.Getenv("SLOTTED_PASSWORD")
	settings.DBName = os.Getenv("SLOTTED_DATABASE")
	settings.Timeout = 10 * time.Second
	// Otherwise the driver prepares, executes and closes each statement that has arguments: three requests for one.
	settings.InterpolateParams = true
	// caching_sha2_password without TLS: the driver fetches the public key of the server. With TLS:
	// settings.TLSConfig = "true", or the name of mysql.RegisterTLSConfig
	return sql.Open("mysql", settings.FormatDSN())
}

// Repeats a transaction after the errors of repeat, and on another connection after a lost one, whose COMMIT may have succeeded.
// So work begins with the INSERT of a unique request, and duplicate means that an earlier attempt has counted.
func inTransaction(db *sql.DB, work func(*sql.Tx) error) error {
	for attempt := 1; ; attempt++ {
		tx, err := db.Begin()
		if err == nil {
			if err = work(tx); err == nil {
				err = tx.Commit()
			} else {
				// After error 1205, the transaction is still open.
				tx.Rollback()
			}
		}
		switch {
		case err == nil || number(err) == duplicate:
			return nil
		case !repeat[number(err)] && !isLost(err) || attempt == attempts:
			return err
		}
		fmt.Fprintln(os.Stderr, "repeat after error", number(err))
		time.Sleep(time.Duration(mathrand.Intn(10<<attempt)) * time.Millisecond)
	}
}

// Named counter and stock: an order, its count and its seats are committed together, or none of them. An order that is sent again
// with the same request is the same order.
func placeOrder(db *sql.DB, request string, seats int, counter string) error {
	return inTransaction(db, func(tx *sql.Tx) error {
		// With tx, not db: the pool would execute the statement on another connection, outside the transaction.
		_, err := tx.Exec("INSERT INTO orders (request, seats) VALUES (?, ?)", request, seats)
		// Last and in this order in all transactions, because each call locks a slot until COMMIT.
		if err == nil {
			_, err = tx.Exec("CALL counter_increment(?)", counter)
		}
		// If fewer are left, the call takes none and fails with notEnough.
		if err == nil {
			_, err = tx.Exec("CALL bounded_counter_take(?, ?)", "seats", seats)
		}
		return err
	})
}

func seatsLeft(db *sql.DB) (total int64, err error) {
	err = db.QueryRow("SELECT bounded_counter_get(?)", "seats").Scan(&total)
	return total, err
}

// Named counter: one total.
func total(db *sql.DB, counter string) (total int64, err error) {
	err = db.QueryRow("SELECT counter_get(?)", counter).Scan(&total)
	return total, err
}

// Named counters: the totals of several in one query.
func totals(db *sql.DB, counters ...interface{}) (map[string]int64, error) {
	places := strings.TrimSuffix(strings.Repeat("?, ", len(counters)), ", ")
	rows, err := db.Query("SELECT counter_name, total FROM counter_totals WHERE counter_name IN ("+places+")", counters...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	read := map[string]int64{}
	for rows.Next() {
		var name string
		var total int64
		if err := rows.Scan(&name, &total); err != nil {
			return nil, err
		}
		read[name] = total
	}
	return read, rows.Err()
}

// Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
func viewArticle(db *sql.DB, id int64) error {
	_, err := db.Exec("CALL articles_views_increment(?)", id)
	return err
}

// Column: the value up to the last roll-up, and the exact total.
func views(db *sql.DB, id int64) (column, total int64, err error) {
	err = db.QueryRow("SELECT views, articles_views_get(id) FROM articles WHERE id = ?", id).Scan(&column, &total)
	return column, total, err
}

// In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second.
type Counts struct {
	db    *sql.DB
	mutex sync.Mutex
	sums  map[string]int64
	// A flush that has not succeeded yet.
	operation string
	batch     map[string]int64
	stop      chan struct{}
	ended     sync.WaitGroup
}

func newCounts(db *sql.DB) *Counts {
	counts := &Counts{db: db, sums: map[string]int64{}, stop: make(chan struct{})}
	counts.ended.Add(1)
	go counts.run()
	return counts
}

func (counts *Counts) count(counter string, amount int64) {
	counts.mutex.Lock()
	counts.sums[counter] += amount
	counts.mutex.Unlock()
}

// After an error, the next flush repeats the operation, which counts once.
func (counts *Counts) flush() error {
	if len(counts.batch) == 0 {
		counts.mutex.Lock()
		counts.operation, counts.batch, counts.sums = newRequest(), counts.sums, map[string]int64{}
		counts.mutex.Unlock()
	}
	if len(counts.batch) == 0 {
		return nil
	}
	var names []string
	for counter := range counts.batch {
		names = append(names, counter)
	}
	sort.Strings(names)
	err := inTransaction(counts.db, func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO counter_operations (operation) VALUES (UNHEX(?))", counts.operation)
		// In the order of the names, so that two processes do not deadlock.
		for _, counter := range names {
			if err == nil {
				_, err = tx.Exec("CALL counter_add(?, ?)", counter, counts.batch[counter])
			}
		}
		return err
	})
	if err == nil || number(err) == unknownCounter {
		counts.batch = nil
	}
	return err
}

func (counts *Counts) run() {
	defer counts.ended.Done()
	for {
		select {
		case <-counts.stop:
			return
		case <-time.After(time.Second):
			if err := counts.flush(); err != nil {
				fmt.Fprintln(os.Stderr, "flush failed:", err)
			}
		}
	}
}

func (counts *Counts) close() error {
	close(counts.stop)
	counts.ended.Wait()
	// What an earlier flush has left, and the last counts.
	if err := counts.flush(); err != nil {
		return err
	}
	return counts.flush()
}

func run(counter string, orders int) error {
	db, err := open()
	if err != nil {
		return err
	}
	defer db.Close()
	for order := 0; order < orders; order++ {
		if err := placeOrder(db, newRequest(), 2, counter); err != nil {
			return err
		}
	}
	placed, err := total(db, counter)
	if err != nil {
		return err
	}
	left, err := seatsLeft(db)
	if err != nil {
		return err
	}
	fmt.Printf("orders: %d\nseats left: %d\n", placed, left)

	if err := viewArticle(db, 1); err != nil {
		return err
	}
	column, exact, err := views(db, 1)
	if err != nil {
		return err
	}
	fmt.Printf("views: %d (%d in the column)\n", exact, column)

	counts := newCounts(db)
	for impression := 0; impression < 1000; impression++ {
		counts.count("impressions", 1)
		if impression%10 == 0 {
			counts.count("clicks", 1)
		}
	}
	if err := counts.close(); err != nil {
		return err
	}
	read, err := totals(db, "clicks", "impressions")
	fmt.Printf("clicks: %d\nimpressions: %d\n", read["clicks"], read["impressions"])
	return err
}

func main() {
	counter, orders := "orders", 1
	if len(os.Args) > 1 {
		counter = os.Args[1]
	}
	if len(os.Args) > 2 {
		orders, _ = strconv.Atoi(os.Args[2])
	}
	err := run(counter, orders)
	if err == nil {
		return
	}
	meaning, code := "", 1
	switch {
	case number(err) == unknownCounter:
		meaning, code = "unknown counter: ", 3
	case number(err) == notEnough:
		meaning, code = "sold out: ", 5
	case isLost(err):
		meaning, code = "connection lost: ", 4
	}
	fmt.Fprintln(os.Stderr, meaning+err.Error())
	os.Exit(code)
}
