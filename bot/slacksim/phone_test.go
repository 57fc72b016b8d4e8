package slacksim_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// On a phone nothing is cut off: the list of people lies inside the window, and the panel's buttons stay in sight however many
// lines are above them. An avatar has letters, not the bracket of a remark.
func TestPageOnAPhone(t *testing.T) {
	panel := slacksim.Panel{Title: "World", Actions: []slacksim.PanelAction{{Label: "Start a run", ID: "go"}}}
	for i := range 40 {
		panel.Items = append(panel.Items, slacksim.PanelItem{Label: fmt.Sprintf("run_%d", i), Value: "waiting"})
	}
	s := newSim(t, slacksim.Options{Unlimited: true, Panel: func() slacksim.Panel { return panel }})
	newApp(t, s)
	s.AddUser(slacksim.User{ID: "U0LONG", Name: "alice", RealName: "Ada (release manager of everything)"})
	tab := browser(t, s)
	inside := func(selector string) chromedp.Action[chromedp.Void] {
		return chromedp.Poll[chromedp.Void](`(() => { const r = document.querySelector("` + selector + `")?.getBoundingClientRect(); return r && r.width > 0 && r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight; })()`)
	}
	for _, width := range []int64{320, 390, 720} {
		err := chromedp.Do(tab,
			chromedp.EmulateViewport(width, 700), chromedp.Poll[chromedp.Void](fmt.Sprintf("innerWidth === %d", width)),
			chromedp.Click("#me"), chromedp.WaitVisible("#people"), inside("#people"), chromedp.Click(`[data-user="U0LONG"]`),
			chromedp.Poll[chromedp.Void](`document.querySelector("#me b").textContent.startsWith("Ada") && document.querySelector("#me .avatar").textContent === "A"`),
			chromedp.Click("#panel-toggle"), inside("#panel .panel-actions"), inside("#panel .panel-actions .btn"),
			chromedp.Click("#panel-toggle"), chromedp.WaitNotVisible("#panel"),
		)
		if err != nil {
			t.Fatalf("at %d pixels: %v", width, err)
		}
	}
}
