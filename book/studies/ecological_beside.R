# What ecological inference is done with in R, on the tables that `python -m studies.ecological_beside FOLDER` writes.
# Debian: r-cran-eipack r-cran-ei r-cran-eco r-cran-coda. Rscript ecological_beside.R FOLDER METHOD TABLE appends rows to
# FOLDER/rates.csv. METHOD: md (eiPack, multinomial-Dirichlet), king (ei), eco, eco-context.
suppressMessages({library(eiPack); library(ei); library(eco); library(coda)})
args <- commandArgs(TRUE); folder <- args[1]; method <- args[2]; name <- args[3]
d <- read.csv(file.path(folder, paste0(name, ".csv")), check.names = FALSE)
groups <- grep("^group", names(d), value = TRUE); classes <- grep("^class", names(d), value = TRUE)
d <- d[rowSums(d[groups]) > 0, ]
CHAINS <- 3

# Draws of the rate of each group and class, one matrix per chain, with columns "group class".
draws_md <- function() {
  form <- as.formula(sprintf("cbind(%s) ~ cbind(%s)", paste(classes, collapse = ", "), paste(groups, collapse = ", ")))
  tuned <- tuneMD(form, data = d, ntunes = 10, totaldraws = 10000)
  lapply(1:CHAINS, function(k) {
    set.seed(k)
    fit <- ei.MD.bayes(form, data = d, tune.list = tuned, burnin = 20000, sample = 1000, thin = 50)
    cells <- as.matrix(fit$draws$Cell.counts)
    sapply(paste(rep(groups, each = length(classes)), classes), function(pair) {
      p <- strsplit(pair, " ")[[1]]
      cells[, paste("ccount", p[1], p[2], sep = ".")] / sum(d[[p[1]]])
    })
  })
}
two <- function(first, second) {  # of the two groups, rates of the second class
  out <- cbind(1 - first, first, 1 - second, second)
  colnames(out) <- c(paste(groups[1], classes), paste(groups[2], classes)); out
}
draws_king <- function() {
  n <- rowSums(d[groups])
  people <<- data.frame(X = d[[groups[1]]] / n, Y = d[[classes[2]]] / n, N = n)
  set.seed(1)
  fit <- ei(Y ~ X, total = "N", data = people)
  ends <- ei:::.aggs(fit)
  list(two(ends[, 1], ends[, 2]))
}
draws_eco <- function(context) {
  n <- rowSums(d[groups])
  table <- data.frame(X = d[[groups[1]]] / n, Y = d[[classes[2]]] / n, N = n)
  lapply(1:CHAINS, function(k) {
    set.seed(k)
    fit <- eco(Y ~ X, data = table, N = N, context = context, parameter = TRUE, n.draws = 20000, burnin = 5000, thin = 9)
    n1 <- table$X * table$N; n2 <- (1 - table$X) * table$N
    two(fit$W[, 1, ] %*% n1 / sum(n1), fit$W[, 2, ] %*% n2 / sum(n2))
  })
}
start <- proc.time()
chains <- suppressWarnings(switch(method, md = draws_md(), king = draws_king(), eco = draws_eco(FALSE), `eco-context` = draws_eco(TRUE)))
seconds <- sum((proc.time() - start)[1:2])
all <- do.call(rbind, chains)
rhat <- if (length(chains) > 1) sapply(colnames(all), function(j) gelman.diag(mcmc.list(lapply(chains, function(x) mcmc(x[, j]))), autoburnin = FALSE)$psrf[1, 1]) else NA
rows <- data.frame(table = name, method = method, cell = colnames(all), rate = colMeans(all), low = apply(all, 2, quantile, .025),
                   high = apply(all, 2, quantile, .975), rhat = rhat, cpu_seconds = seconds)
out <- file.path(folder, "rates.csv")
write.table(format(rows, digits = 6, trim = TRUE), out, sep = ",", row.names = FALSE, col.names = !file.exists(out), append = file.exists(out), quote = FALSE)
