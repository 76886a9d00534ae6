# Installs the eyas command: one file, whose checksum is verified.
#
#   powershell -ExecutionPolicy Bypass -File install.ps1 -From WHERE [-To DIR]
#
# WHERE is a folder or an https:// address with the files of a release: SHA256SUMS and the archives. DIR is where the
# command goes, otherwise Programs\eyas below the user's local data. Nothing else is changed: PATH remains as it is.
[CmdletBinding()]
param(
    [Parameter(Mandatory = $true)] [string] $From,
    [string] $To = (Join-Path $env:LOCALAPPDATA 'Programs\eyas')
)
$ErrorActionPreference = 'Stop'
# The bar of Windows PowerShell 5 makes downloads several times slower.
$ProgressPreference = 'SilentlyContinue'

function Stop-Installation([string] $Why) {
    [Console]::Error.WriteLine("install.ps1: $Why")
    exit 1
}

# Fetches a file of the release into the working directory, and returns its path there.
function Get-ReleaseFile([string] $Name) {
    $path = Join-Path $work $Name
    if ($From -like 'https://*') {
        try { Invoke-WebRequest -UseBasicParsing -Uri "$($From.TrimEnd('/'))/$Name" -OutFile $path }
        catch { Stop-Installation "$($From.TrimEnd('/'))/$Name cannot be fetched: $($_.Exception.Message)" }
    } elseif ($From -like '*://*') {
        Stop-Installation "only https:// addresses and folders are used, not $From"
    } else {
        try { Copy-Item -LiteralPath (Join-Path $From $Name) -Destination $path }
        catch { Stop-Installation "$From is no folder with the files of a release" }
    }
    $path
}

$work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory -Path $work | Out-Null
try {
    # Windows PowerShell 5 offers what .NET has by default, which may end at TLS 1.0.
    [Net.ServicePointManager]::SecurityProtocol =
        [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    # Windows on arm64 runs programs for x86-64, too.
    $line = Get-Content -LiteralPath (Get-ReleaseFile 'SHA256SUMS') |
        Where-Object { $_ -match '^[0-9a-f]{64}  eyas-[0-9][^ /]*-x86_64-windows\.zip$' } |
        Select-Object -Last 1
    if (-not $line) { Stop-Installation "$From has no archive for Windows" }
    $sum, $name = $line -split '  ', 2
    $archive = Get-ReleaseFile $name
    if ((Get-FileHash -Algorithm SHA256 -LiteralPath $archive).Hash -ne $sum) {
        Stop-Installation "$name is not what SHA256SUMS says: nothing was installed; fetch it again"
    }
    Expand-Archive -LiteralPath $archive -DestinationPath $work
    $command = Join-Path (Join-Path $work ($name -replace '\.zip$', '')) 'eyas.exe'
    $runs = $false
    try { $version = & $command --version; $runs = $LASTEXITCODE -eq 0 } catch { }
    if (-not $runs) { Stop-Installation 'the command does not run on this machine: nothing was installed' }
    $installed = Join-Path $To 'eyas.exe'
    try {
        New-Item -ItemType Directory -Force -Path $To | Out-Null
        Move-Item -Force -LiteralPath $command -Destination $installed
    } catch {
        # A program that runs cannot be replaced here.
        Stop-Installation "$installed cannot be written: end eyas if it runs, or name another directory with -To"
    }
    Write-Output "$version is in $installed"
    $directories = $env:PATH -split ';' | ForEach-Object { $_.TrimEnd('\') }
    if ($directories -contains $To.TrimEnd('\')) { Write-Output 'try: eyas demo' }
    else { Write-Output "$To is not in PATH; try: & '$installed' demo" }
} finally {
    Remove-Item -Recurse -Force -LiteralPath $work
}
