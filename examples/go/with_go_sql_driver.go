// Counts with go-sql-driver/mysql. examples/README.md has the settings, the output and the rules for errors.
package main

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

const unknownCounter = 30003
const attempts = 10

// The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
var repeat = map[uint16]bool{1213: true, 1205: true, 1020: true, 3101: true}

var errConnectionLost = errors.New("connection lost")

// number returns the number of an error of the server, or 0.
func number(err error) uint16 {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return server.Number
	}
	return 0
}

func isLost(err error) bool {
	var network net.Error
	return errors.Is(err, errConnectionLost) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) ||
		errors.As(err, &network)
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

// inTransaction executes work in a transaction, and repeats the transaction if the server has rolled it back.
func inTransaction(db *sql.DB, work func(*sql.Tx) error) error {
	for attempt := 1; ; attempt++ {
		counted := "has not counted"
		tx, err := db.Begin()
		if err == nil {
			if err = work(tx); err == nil {
				counted = "may have counted"
				err = tx.Commit()
			} else {
				// After error 1205, the transaction is still open.
				tx.Rollback()
			}
		}
		if err != nil && isLost(err) {
			return fmt.Errorf("%w: the transaction %s: %v", errConnectionLost, counted, err)
		}
		if !repeat[number(err)] || attempt == attempts {
			return err
		}
		fmt.Fprintln(os.Stderr, "repeat after error", number(err))
		time.Sleep(time.Duration(rand.Intn(10<<attempt)) * time.Millisecond)
	}
}

func placeOrder(db *sql.DB, item, counter string) error {
	return inTransaction(db, func(tx *sql.Tx) error {
		// With tx, not db: the pool would execute the statement on another connection, outside the transaction.
		if _, err := tx.Exec("INSERT INTO orders (item) VALUES (?)", item); err != nil {
			return err
		}
		// Last, because the slot stays locked until COMMIT.
		_, err := tx.Exec("CALL counter_increment(?)", counter)
		return err
	})
}

func total(db *sql.DB, counter string) (total int64, err error) {
	err = db.QueryRow("SELECT counter_get(?)", counter).Scan(&total)
	return total, err
}

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

// Counts sums counts in memory, and adds the sums to the counters once a second. A crash loses the sums of this second.
type Counts struct {
	db    *sql.DB
	mutex sync.Mutex
	sums  map[string]int64
	stop  chan struct{}
	ended sync.WaitGroup
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

func (counts *Counts) flush() error {
	counts.mutex.Lock()
	sums := counts.sums
	counts.sums = map[string]int64{}
	counts.mutex.Unlock()
	if len(sums) == 0 {
		return nil
	}
	var names []string
	for counter := range sums {
		names = append(names, counter)
	}
	sort.Strings(names)
	// One transaction: all sums count, or none. In the order of the names, so that two processes do not deadlock.
	committing := false
	tx, err := counts.db.Begin()
	if err == nil {
		defer tx.Rollback()
		for at := 0; at < len(names) && err == nil; at++ {
			_, err = tx.Exec("CALL counter_add(?, ?)", names[at], sums[names[at]])
		}
		if err == nil {
			committing = true
			err = tx.Commit()
		}
	}
	// If the connection is lost in COMMIT, the sums may have counted.
	if err != nil && (repeat[number(err)] || !committing && number(err) != unknownCounter) {
		for counter, amount := range sums {
			counts.count(counter, amount)
		}
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
	return counts.flush()
}

func run(counter string) error {
	db, err := open()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := placeOrder(db, "a book", counter); err != nil {
		return err
	}
	ordered, err := total(db, counter)
	if err != nil {
		return err
	}
	fmt.Println("total of the counter:", ordered)

	counts := newCounts(db)
	for view := 0; view < 1000; view++ {
		counts.count("views", 1)
		if view%10 == 0 {
			counts.count("clicks", 1)
		}
	}
	if err := counts.close(); err != nil {
		return err
	}
	read, err := totals(db, "views", "clicks")
	if err != nil {
		return err
	}
	var names []string
	for name := range read {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(name, read[name])
	}
	return nil
}

func main() {
	counter := "orders"
	if len(os.Args) > 1 {
		counter = os.Args[1]
	}
	err := run(counter)
	switch {
	case err == nil:
	case number(err) == unknownCounter:
		fmt.Fprintln(os.Stderr, "unknown counter:", err)
		os.Exit(3)
	case errors.Is(err, errConnectionLost):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(4)
	case isLost(err):
		fmt.Fprintln(os.Stderr, "connection lost:", err)
		os.Exit(4)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
