package injection

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// call is a call of a tool of a case.
type call struct {
	Tool   string         `json:"tool"`
	Args   map[string]any `json:"args"`
	Result string         `json:"result"`
}

// The services outside. Each has a host of its own, because policies and questions are about hosts.
const (
	reading = "reading" // what every service shows; nothing is changed by it
	mail    = "mail"
	dates   = "dates"
	drive   = "drive"
	bank    = "bank"
	chat    = "chat"
	booking = "booking"
	website = "website" // where pages are published
	page    = "page"    // any page of the web: its own host
)

// acting are the services by which something happens outside.
var acting = []string{mail, dates, drive, bank, chat, booking, website}

// doors say which service a tool of the cases is a request to. A tool without a door fails the test.
var doors = map[string]string{
	"send_email": mail, "delete_email": mail,
	"get_unread_emails": reading, "get_sent_emails": reading, "get_received_emails": reading, "get_draft_emails": reading,
	"search_emails": reading, "search_contacts_by_name": reading, "search_contacts_by_email": reading,
	"create_calendar_event": dates, "cancel_calendar_event": dates, "reschedule_calendar_event": dates,
	"add_calendar_event_participants": dates,
	"get_current_day":                 reading, "search_calendar_events": reading, "get_day_calendar_events": reading,
	"append_to_file": drive, "create_file": drive, "delete_file": drive, "share_file": drive,
	"search_files_by_filename": reading, "get_file_by_id": reading, "list_files": reading, "search_files": reading,

	"reserve_hotel": booking, "reserve_car_rental": booking, "reserve_restaurant": booking,
	"get_user_information": reading, "get_all_hotels_in_city": reading, "get_hotels_prices": reading,
	"get_rating_reviews_for_hotels": reading, "get_hotels_address": reading, "get_all_restaurants_in_city": reading,
	"get_cuisine_type_for_restaurants": reading, "get_restaurants_address": reading, "get_rating_reviews_for_restaurants": reading,
	"get_dietary_restrictions_for_all_restaurants": reading, "get_contact_information_for_restaurants": reading,
	"get_price_for_restaurants": reading, "check_restaurant_opening_hours": reading, "get_all_car_rental_companies_in_city": reading,
	"get_car_types_available": reading, "get_rating_reviews_for_car_rental": reading, "get_car_fuel_options": reading,
	"get_car_rental_address": reading, "get_car_price_per_day": reading, "get_flight_information": reading,

	"send_money": bank, "schedule_transaction": bank, "update_scheduled_transaction": bank, "update_password": bank,
	"update_user_info": bank,
	"get_iban":         reading, "get_balance": reading, "get_most_recent_transactions": reading, "get_scheduled_transactions": reading,
	"read_file": reading, "get_user_info": reading,

	"add_user_to_channel": chat, "send_direct_message": chat, "send_channel_message": chat, "invite_user_to_slack": chat,
	"remove_user_from_slack": chat,
	"get_channels":           reading, "read_channel_messages": reading, "read_inbox": reading, "get_users_in_channel": reading,
	"get_webpage": page, "post_webpage": website,
}

// acts reports whether something happens outside by a call, other than that a page is shown.
func (c call) acts() bool { return slices.Contains(acting, doors[c.Tool]) }

// site is the host of the page that a call shows.
func (c call) site() string {
	at, _ := c.Args["url"].(string)
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	return strings.ToLower(u.Hostname())
}

// longest is how long the arguments in an address may be, of the 4096 characters that an address may have.
const longest = 3500

// said are the arguments of a call as they stand in an address. Texts that do not fit are cut, and their hash takes the place of the rest.
func (c call) said() string {
	for _, most := range []int{1 << 20, 1000, 200, 80, 30} {
		raw, err := json.Marshal(cut(c.Args, most))
		if text := url.QueryEscape(string(raw)); err == nil && len(text) <= longest {
			return text
		}
	}
	raw, _ := json.Marshal(c.Args)
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

func cut(value any, most int) any {
	switch v := value.(type) {
	case string:
		if len(v) > most {
			return fmt.Sprintf("%s... %d bytes, sha256 %x", strings.ToValidUTF8(v[:most], ""), len(v), sha256.Sum256([]byte(v)))
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = cut(v[i], most)
		}
		return list
	case map[string]any:
		fields := map[string]any{}
		for name := range v {
			fields[name] = cut(v[name], most)
		}
		return fields
	}
	return value
}

// world are the services outside, on addresses of this machine's loopback.
type world struct {
	t     *testing.T
	hosts map[string]string // service or site: host and port

	mu      sync.Mutex
	results map[string]string   // of the requests of the cases, by path and query
	done    map[string][]string // by case: the requests by which something happened
	shown   map[string][]string // by case: the other requests
	strange []string            // requests that are of no case
}

func startWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, hosts: map[string]string{}, results: map[string]string{}, done: map[string][]string{}, shown: map[string][]string{}}
	w.open(reading)
	for _, service := range acting {
		w.open(service)
	}
	return w
}

// open begins to serve a service or a site at an address of its own.
func (w *world) open(name string) {
	w.t.Helper()
	if w.hosts[name] != "" {
		return
	}
	n := len(w.hosts) + 2
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.%d.%d:0", n/250, n%250+1))
	if err != nil && os.Getenv("CI") == "" {
		w.t.Skipf("this system has one loopback address only: %v", err)
	}
	if err != nil {
		w.t.Fatalf("this system has one loopback address only: %v", err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.serve(name, rw, r) }))
	if err := s.Listener.Close(); err != nil {
		w.t.Fatal(err)
	}
	s.Listener = l
	s.Start()
	w.t.Cleanup(s.Close)
	w.hosts[name] = l.Addr().String()
}

func (w *world) serve(service string, rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	asked := service + r.URL.Path + "?" + r.URL.RawQuery
	result, known := w.results[asked]
	switch {
	case !known:
		w.strange = append(w.strange, asked)
	case slices.Contains(acting, service):
		w.done[c] = append(w.done[c], asked)
	default:
		w.shown[c] = append(w.shown[c], asked)
	}
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = bytes.NewBufferString("ok\n" + result).WriteTo(rw)
}

// door returns the address of a call in a case, and the name under which the world notes it.
func (w *world) door(c string, one call) (address, note string) {
	w.t.Helper()
	service, ok := doors[one.Tool]
	if !ok {
		w.t.Fatalf("the tool %s has no door", one.Tool)
	}
	if service == page {
		service = one.site()
		w.open(service)
	}
	path := "/" + c + "/" + one.Tool + "?" + one.said()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.results[service+path] == "" {
		w.results[service+path] = one.Result
	}
	return "http://" + w.hosts[service] + path, service + path
}

// happened returns what happened outside in a case, in order of their texts.
func (w *world) happened(c string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.done[c])
	slices.Sort(list)
	return list
}
