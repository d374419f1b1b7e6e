//! A catalogue of 253 tools in 24 toolsets, with the size and shape of a real server for market data.
//!
//! Names and counts are those of a real server; descriptions are generated from the names.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::Tool;

/// Each toolset and its tools. `earnings` is missing here: it has the tools of `calendar`.
const SETS: [(&str, &str); 23] = [
    (
        "search",
        "searchSymbol searchName searchCIK searchCUSIP searchISIN stockScreener \
         searchExchangeVariants getCompanySymbols getFinancialStatementSymbols getCIKList \
         getSymbolChanges getETFList getActivelyTradingList getEarningsTranscriptList \
         getAvailableExchanges getAvailableSectors getAvailableIndustries getAvailableCountries",
    ),
    (
        "company",
        "getCompanyProfile getCompanyProfileByCIK getCompanyNotes getStockPeers \
         getDelistedCompanies getEmployeeCount getHistoricalEmployeeCount getMarketCap \
         getBatchMarketCap getHistoricalMarketCap getShareFloat getAllShareFloat \
         getLatestMergersAcquisitions searchMergersAcquisitions getCompanyExecutives \
         getExecutiveCompensation getExecutiveCompensationBenchmark",
    ),
    (
        "quotes",
        "getQuote getQuoteShort getAftermarketTrade getAftermarketQuote getStockPriceChange \
         getBatchQuotes getBatchQuotesShort getBatchAftermarketTrade getBatchAftermarketQuote \
         getExchangeQuotes getMutualFundQuotes getETFQuotes getCommodityQuotes getCryptoQuotes \
         getForexQuotes getIndexQuotes",
    ),
    (
        "statements",
        "getIncomeStatement getBalanceSheetStatement getCashFlowStatement \
         getLatestFinancialStatements getIncomeStatementTTM getBalanceSheetStatementTTM \
         getCashFlowStatementTTM getIncomeStatementGrowth getBalanceSheetStatementGrowth \
         getCashFlowStatementGrowth getFinancialStatementGrowth getFinancialReportsDates \
         getFinancialReportJSON getFinancialReportXLSX getRevenueProductSegmentation \
         getRevenueGeographicSegmentation getIncomeStatementAsReported \
         getBalanceSheetStatementAsReported getCashFlowStatementAsReported \
         getFinancialStatementFullAsReported getKeyMetrics getRatios getKeyMetricsTTM \
         getFinancialRatiosTTM getFinancialScores getOwnerEarnings",
    ),
    (
        "calendar",
        "getDividends getDividendsCalendar getEarningsReports getEarningsCalendar getIPOCalendar \
         getIPODisclosures getIPOProspectuses getStockSplits getStockSplitCalendar \
         getLatestEarningsTranscripts getEarningsTranscript getEarningsTranscriptDates \
         getAvailableTranscriptSymbols",
    ),
    (
        "charts",
        "getLightChart getFullChart getUnadjustedChart getDividendAdjustedChart getIntradayChart",
    ),
    (
        "news",
        "getFMPArticles getGeneralNews getPressReleases getStockNews getCryptoNews getForexNews \
         searchPressReleases searchStockNews searchCryptoNews searchForexNews",
    ),
    (
        "analyst",
        "getAnalystEstimates getRatingsSnapshot getHistoricalRatings getPriceTargetSummary \
         getPriceTargetConsensus getPriceTargetNews getPriceTargetLatestNews getStockGrades \
         getHistoricalStockGrades getStockGradeSummary getStockGradeNews getStockGradeLatestNews",
    ),
    (
        "market-performance",
        "getSectorPerformanceSnapshot getIndustryPerformanceSnapshot \
         getHistoricalSectorPerformance getHistoricalIndustryPerformance getSectorPESnapshot \
         getIndustryPESnapshot getHistoricalSectorPE getHistoricalIndustryPE getBiggestGainers \
         getBiggestLosers getMostActiveStocks getExchangeMarketHours getHolidaysByExchange \
         getAllExchangeMarketHours",
    ),
    (
        "insider-trades",
        "getLatestInsiderTrading searchInsiderTrades searchInsiderTradesByReportingName \
         getInsiderTransactionTypes getInsiderTradeStatistics getAcquisitionOwnership",
    ),
    (
        "institutional",
        "getLatestInstitutionalFilings getSecFilingExtract getForm13FFilingDates \
         getFilingExtractAnalyticsByHolder getHolderPerformanceSummary getHolderIndustryBreakdown \
         getPositionsSummary getIndustryPerformanceSummary",
    ),
    (
        "indexes",
        "getIndexList getIndexQuote getIndexShortQuote getAllIndexQuotes \
         getHistoricalIndexLightChart getHistoricalIndexFullChart getIndex1MinuteData \
         getIndex5MinuteData getIndex1HourData getSP500Constituents getNasdaqConstituents \
         getDowJonesConstituents getHistoricalSP500Changes getHistoricalNasdaqChanges \
         getHistoricalDowJonesChanges",
    ),
    (
        "economics",
        "getTreasuryRates getEconomicIndicators getEconomicCalendar getMarketRiskPremium \
         getCOTReports getCOTAnalysis getCOTList",
    ),
    (
        "crypto",
        "getCryptocurrencyList getCryptocurrencyQuote getCryptocurrencyShortQuote \
         getCryptocurrencyBatchQuotes getCryptocurrencyHistoricalLightChart \
         getCryptocurrencyHistoricalFullChart getCryptocurrency1MinuteData \
         getCryptocurrency5MinuteData getCryptocurrency1HourData",
    ),
    (
        "forex",
        "getForexList getForexQuote getForexShortQuote getForexBatchQuotes \
         getForexHistoricalLightChart getForexHistoricalFullChart getForex1MinuteData \
         getForex5MinuteData getForex1HourData",
    ),
    ("commodities", "listCommodities"),
    (
        "etf-funds",
        "getFundHoldings getFundInfo getFundCountryAllocation getFundAssetExposure \
         getFundSectorWeighting getDisclosure getFundDisclosure searchFundDisclosures \
         getFundDisclosureDates getLatestCrowdfundingCampaigns searchCrowdfundingCampaigns \
         getCrowdfundingCampaignsByCIK getLatestEquityOfferings searchEquityOfferings \
         getEquityOfferingsByCIK",
    ),
    ("esg", "getESGDisclosures getESGRatings getESGBenchmarks"),
    (
        "technical-indicators",
        "getSMA getEMA getWMA getDEMA getTEMA getRSI getStandardDeviation getWilliams getADX",
    ),
    (
        "senate",
        "getLatestSenateDisclosures getLatestHouseDisclosures getSenateTrades \
         getSenateTradesByName getHouseTrades getHouseTradesByName",
    ),
    (
        "sec-filings",
        "getLatest8KFilings getLatestFinancialFilings getFilingsByFormType getFilingsBySymbol \
         getFilingsByCIK searchCompaniesByName searchCompaniesBySymbol searchCompaniesByCIK \
         getCompanySECProfile getIndustryClassificationList searchIndustryClassification \
         getAllIndustryClassification",
    ),
    ("dcf", "getDCFValuation getLeveredDCFValuation calculateCustomDCF calculateCustomLeveredDCF"),
    (
        "bulk",
        "getCompanyProfilesBulk getStockRatingsBulk getDCFValuationsBulk getFinancialScoresBulk \
         getPriceTargetSummariesBulk getETFHoldersBulk getUpgradesDowngradesConsensusBulk \
         getKeyMetricsTTMBulk getRatiosTTMBulk getStockPeersBulk getEarningsSurprisesBulk \
         getIncomeStatementsBulk getIncomeStatementGrowthBulk getBalanceSheetStatementsBulk \
         getBalanceSheetGrowthBulk getCashFlowStatementsBulk getCashFlowGrowthBulk getEODDataBulk",
    ),
];

/// The toolset with the same tools as `calendar`.
const TWIN: &str = "earnings";

/// Every toolset with its tools; `calendar` and `earnings` share theirs.
pub fn market_sets() -> Vec<(&'static str, Vec<&'static str>)> {
    let split = |names: &'static str| names.split(' ').collect::<Vec<_>>();
    let mut sets: Vec<_> = SETS.iter().map(|(set, names)| (*set, split(names))).collect();
    let at = sets.iter().position(|(set, _)| *set == "dcf").expect("the sets are fixed");
    let calendar = sets.iter().find(|(set, _)| *set == "calendar").map(|(_, names)| names.clone());
    sets.insert(at, (TWIN, calendar.expect("the sets are fixed")));
    sets
}

/// The 253 tools, each once. Calls echo their arguments.
pub fn market_catalogue() -> Vec<Tool> {
    let sets = market_sets().into_iter().filter(|(set, _)| *set != TWIN);
    sets.flat_map(|(set, names)| names.into_iter().map(move |name| tool(set, name))).collect()
}

/// The `toolsets` of a configuration, indented for the root.
pub fn market_toolsets_yaml() -> String {
    let mut yaml = String::from("  toolsets:\n");
    for (set, names) in market_sets() {
        let subject = set.replace('-', " ");
        writeln!(
            yaml,
            "    - {{name: {set}, description: \"Market data: {subject}\", when_to_use: \"to know about {subject}\", \
             tools: [{}]}}",
            names.join(", ")
        )
        .expect("a text takes everything");
    }
    yaml
}

fn tool(set: &str, name: &str) -> Tool {
    let words = words(name);
    let (verb, subject) = words.split_first().expect("a name has words");
    let verb = match verb.as_str() {
        "search" => "Searches",
        "calculate" => "Calculates",
        "list" => "Lists",
        _ => "Reads",
    };
    Tool::new(name)
        .description(format!(
            "{verb} {} (group {set}). Answers with one row for each match.",
            subject.join(" ")
        ))
        .schema(schema(name))
        .member(
            "annotations",
            json!({"readOnlyHint": true, "openWorldHint": true, "idempotentHint": true}),
        )
        .member("execution", json!({"taskSupport": "forbidden"}))
}

fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for c in name.chars() {
        match words.last_mut() {
            Some(word) if !(c.is_uppercase() && was_lower) => word.extend(c.to_lowercase()),
            _ => words.push(c.to_lowercase().collect()),
        }
        was_lower = c.is_lowercase();
    }
    words
}

fn schema(name: &str) -> Value {
    let has = |part: &str| name.contains(part);
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "number", "description": about});
    let mut properties = Map::new();
    let first = if has("Batch") {
        Some(("symbols", text("Several ticker symbols, separated by commas")))
    } else if has("ByCIK") || has("searchCIK") {
        Some(("cik", text("The number of a company in the register")))
    } else if name.starts_with("search") {
        Some(("query", text("What to look for")))
    } else if has("Bulk") {
        Some(("part", text("Which part of the whole file")))
    } else if ["List", "Available", "All", "Latest", "Biggest"].iter().any(|part| has(part)) {
        None
    } else {
        Some(("symbol", text("One ticker symbol")))
    };
    let required: Vec<_> = first.iter().map(|(name, _)| *name).collect();
    properties.extend(first.map(|(name, schema)| (name.to_owned(), schema)));
    if has("Historical") || has("Chart") || has("Calendar") {
        properties.insert("from_date".into(), text("The first day, as YYYY-MM-DD"));
        properties.insert("to".into(), text("The last day, as YYYY-MM-DD"));
    }
    if has("Latest") || has("search") || has("News") {
        properties.insert("page".into(), number("Which page, from zero"));
        properties.insert("limit".into(), number("How many rows at most"));
    }
    json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        "$schema": "http://json-schema.org/draft-07/schema#",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;

    const COUNTS: [(&str, usize); 24] = [
        ("search", 18),
        ("company", 17),
        ("quotes", 16),
        ("statements", 26),
        ("calendar", 13),
        ("charts", 5),
        ("news", 10),
        ("analyst", 12),
        ("market-performance", 14),
        ("insider-trades", 6),
        ("institutional", 8),
        ("indexes", 15),
        ("economics", 7),
        ("crypto", 9),
        ("forex", 9),
        ("commodities", 1),
        ("etf-funds", 15),
        ("esg", 3),
        ("technical-indicators", 9),
        ("senate", 6),
        ("sec-filings", 12),
        ("earnings", 13),
        ("dcf", 4),
        ("bulk", 18),
    ];

    #[test]
    fn there_are_253_tools_in_24_sets() {
        let counts: Vec<_> = market_sets().iter().map(|(set, tools)| (*set, tools.len())).collect();
        assert_eq!(counts, COUNTS);
        let names: BTreeSet<_> = market_catalogue().into_iter().map(|tool| tool.name).collect();
        assert_eq!((names.len(), market_catalogue().len()), (253, 253));
    }

    #[test]
    fn names_are_told_in_words() {
        let catalogue = market_catalogue();
        let about = |name: &str| {
            let tool = catalogue.iter().find(|tool| tool.name == name).unwrap();
            tool.description.clone()
        };
        assert_eq!(
            about("getQuoteShort"),
            "Reads quote short (group quotes). Answers with one row for each match."
        );
        assert_eq!(
            about("searchCIK"),
            "Searches cik (group search). Answers with one row for each match."
        );
    }

    /// Names and toolsets match the captures of the real server, if these are available.
    #[test]
    fn names_and_sets_are_those_of_the_original() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let places = ["../shared/fixtures", "../../shared/fixtures"].map(|place| root.join(place));
        let Some(place) = places.iter().find(|place| place.is_dir()) else { return };
        let read = |name: &str| -> Value {
            serde_json::from_slice(&std::fs::read(place.join(name)).unwrap()).unwrap()
        };
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let listed = read("fmp-2.6.12-tools-list-legacy.json");
        let listed: BTreeSet<_> =
            listed["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
        let ours: BTreeSet<_> = market_catalogue().into_iter().map(|tool| tool.name).collect();
        assert_eq!(ours, listed);
        let sets = read("fmp-2.6.12-list_toolsets-all-enabled.json");
        let theirs: BTreeMap<_, Vec<_>> = sets["toolsets"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|set| set["key"] != TWIN)
            .map(|set| {
                (text(&set["key"]), set["tools"].as_array().unwrap().iter().map(text).collect())
            })
            .collect();
        let ours: BTreeMap<_, Vec<_>> = market_sets()
            .into_iter()
            .filter(|(set, _)| *set != TWIN)
            .map(|(set, tools)| (set.to_owned(), tools.into_iter().map(str::to_owned).collect()))
            .collect();
        assert_eq!(ours, theirs);
        assert_eq!(sets["toolsets"].as_array().unwrap().len(), market_sets().len());
    }
}
